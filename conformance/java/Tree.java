import io.fabric8.kubernetes.api.model.Namespaced;
import io.fabric8.kubernetes.api.model.ObjectMetaBuilder;
import io.fabric8.kubernetes.client.CustomResource;
import io.fabric8.kubernetes.model.annotation.Group;
import io.fabric8.kubernetes.model.annotation.Version;

/** The custom resource of trees.yaml. */
@Group("java.watchkeeper.dev")
@Version("v1")
public final class Tree extends CustomResource<Tree.Spec, Tree.Status> implements Namespaced {
  /** What is asked for. */
  public static final class Spec {
    public int height;
    public String kind;
  }

  /** What there is. */
  public static final class Status {
    public int leaves;
  }

  static Tree named(String name, int height) {
    Tree tree = new Tree();
    tree.setMetadata(new ObjectMetaBuilder().withName(name).build());
    tree.setSpec(new Spec());
    tree.getSpec().height = height;
    return tree;
  }
}
