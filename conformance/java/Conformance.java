import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.NamespaceBuilder;
import io.fabric8.kubernetes.api.model.apiextensions.v1.CustomResourceDefinition;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.Watcher;
import io.fabric8.kubernetes.client.WatcherException;
import io.fabric8.kubernetes.client.dsl.base.PatchContext;
import io.fabric8.kubernetes.client.dsl.base.PatchType;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderCallbacks;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderElectionConfigBuilder;
import io.fabric8.kubernetes.client.extended.leaderelection.resourcelock.LeaseLock;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import java.io.File;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;

/**
 * The fabric8 client against the API server that KUBECONFIG names. Its argument is the folder with trees.yaml.
 *
 * Prints a line for every test and at last how many there were and how many failed, which is also its exit code.
 */
public final class Conformance {
  private static final long PATIENCE = 60;
  private static final String GROUP = "java.watchkeeper.dev";

  private final KubernetesClient client;
  private final String folder;
  private final String namespace = "java-" + unique();

  private Conformance(KubernetesClient client, String folder) {
    this.client = client;
    this.folder = folder;
    client.namespaces().resource(new NamespaceBuilder().withNewMetadata().withName(namespace).endMetadata().build()).create();
  }

  private interface Test {
    void run() throws Exception;
  }

  public static void main(String[] arguments) {
    int failed = 0;
    Map<String, Test> tests = new LinkedHashMap<>();
    try (KubernetesClient client = new KubernetesClientBuilder().build()) {
      Conformance here = new Conformance(client, arguments[0]);
      tests.put("objects are created, read, edited and deleted", here::objects);
      tests.put("a stale write is a conflict", here::conflicts);
      tests.put("an informer follows the server", here::informer);
      tests.put("a watch reports every change", here::watch);
      tests.put("server-side apply keeps the fields of others", here::apply);
      tests.put("custom resources are validated, and have a status", here::customResources);
      tests.put("pages add up to the list", here::pages);
      tests.put("leadership is handed over", here::leaderElection);
      for (Map.Entry<String, Test> test : tests.entrySet()) {
        try {
          test.getValue().run();
          System.out.println("ok      " + test.getKey());
        } catch (Exception | AssertionError problem) {
          failed++;
          System.out.println("FAILED  " + test.getKey());
          problem.printStackTrace(System.out);
        }
      }
    }
    System.out.println("fabric8: " + tests.size() + " tests, " + failed + " failed");
    System.exit(failed);
  }

  private void objects() {
    ConfigMap created = client.resource(configMap("one", Map.of("k", "1"))).create();
    equal(named("one").getMetadata().getUid(), created.getMetadata().getUid());
    client.configMaps().inNamespace(namespace).withName("one").edit(map -> {
      map.getData().put("k", "2");
      return map;
    });
    equal(named("one").getData(), Map.of("k", "2"));
    KubernetesClientException again = fails(() -> client.resource(configMap("one", Map.of())).create());
    equal(again.getCode() + " " + again.getStatus().getReason(), "409 AlreadyExists");
    client.configMaps().inNamespace(namespace).withName("one").patch(PatchContext.of(PatchType.JSON_MERGE), "{\"data\":{\"m\":\"3\"}}");
    equal(named("one").getData(), Map.of("k", "2", "m", "3"));
    client.resource(created).delete();
    eventually("it is gone", () -> named("one") == null);
  }

  private void conflicts() {
    ConfigMap created = client.resource(configMap("stale", Map.of("k", "1"))).create();
    ConfigMap changed = new ConfigMapBuilder(created).addToData("k", "2").build();
    client.resource(changed).update();
    KubernetesClientException conflict = fails(() -> client.resource(changed).lockResourceVersion(created.getMetadata().getResourceVersion()).update());
    equal(conflict.getCode() + " " + conflict.getStatus().getReason(), "409 Conflict");
  }

  private void informer() throws Exception {
    client.resource(configMap("early", Map.of(), "informer")).create();
    BlockingQueue<String> news = new LinkedBlockingQueue<>();
    var informer = client.configMaps().inNamespace(namespace).withLabel("test", "informer").inform(new ResourceEventHandler<ConfigMap>() {
      @Override
      public void onAdd(ConfigMap object) {
        news.add("added " + object.getMetadata().getName());
      }

      @Override
      public void onUpdate(ConfigMap old, ConfigMap object) {
        news.add("updated " + object.getMetadata().getName());
      }

      @Override
      public void onDelete(ConfigMap object, boolean unknown) {
        news.add("deleted " + object.getMetadata().getName());
      }
    });
    try (informer) {
      equal(next(news), "added early");
      client.resource(configMap("late", Map.of(), "informer")).create();
      equal(next(news), "added late");
      client.configMaps().inNamespace(namespace).withName("late").edit(map -> new ConfigMapBuilder(map).addToData("k", "v").build());
      equal(next(news), "updated late");
      client.configMaps().inNamespace(namespace).withName("early").edit(map -> new ConfigMapBuilder(map).editMetadata().removeFromLabels("test").endMetadata().build());
      equal(next(news), "deleted early");
      equal(informer.getStore().list().size(), 1);
    }
  }

  private void watch() throws Exception {
    BlockingQueue<String> news = new LinkedBlockingQueue<>();
    var watch = client.configMaps().inNamespace(namespace).withLabel("test", "watch").watch(new Watcher<>() {
      @Override
      public void eventReceived(Action action, ConfigMap object) {
        // The end of what was there already, which has no name; whether it comes before or after the first change is chance.
        if (action != Action.BOOKMARK) {
          news.add(action + " " + object.getMetadata().getName());
        }
      }

      @Override
      public void onClose(WatcherException problem) {
        news.add("closed: " + problem);
      }
    });
    try (watch) {
      ConfigMap seen = client.resource(configMap("seen", Map.of(), "watch")).create();
      equal(next(news), "ADDED seen");
      client.resource(new ConfigMapBuilder(seen).addToData("k", "v").build()).update();
      equal(next(news), "MODIFIED seen");
      client.resource(seen).delete();
      equal(next(news), "DELETED seen");
    }
  }

  private void apply() {
    var applied = configMap("shared", Map.of("a", "1", "b", "1"));
    client.resource(applied).fieldManager("first").serverSideApply();
    var other = configMap("shared", Map.of("b", "2"));
    KubernetesClientException conflict = fails(() -> client.resource(other).fieldManager("second").serverSideApply());
    equal(conflict.getCode(), 409);
    client.resource(other).fieldManager("second").forceConflicts().serverSideApply();
    ConfigMap left = client.resource(configMap("shared", Map.of())).fieldManager("first").serverSideApply();
    equal(left.getData(), Map.of("b", "2"));
  }

  private void customResources() {
    CustomResourceDefinition definition = client.apiextensions().v1().customResourceDefinitions().load(new File(folder, "trees.yaml")).item();
    client.resource(definition).serverSideApply();
    client.apiextensions().v1().customResourceDefinitions().withName("trees." + GROUP).waitUntilCondition(
        there -> there != null && there.getStatus() != null && there.getStatus().getConditions().stream()
            .anyMatch(condition -> condition.getType().equals("Established") && condition.getStatus().equals("True")),
        PATIENCE, TimeUnit.SECONDS);
    var trees = client.resources(Tree.class).inNamespace(namespace);
    Tree oak = trees.resource(Tree.named("oak", 3)).create();
    equal(oak.getSpec().kind, "deciduous");
    KubernetesClientException invalid = fails(() -> trees.resource(Tree.named("tiny", -1)).create());
    equal(invalid.getCode() + " " + invalid.getStatus().getDetails().getCauses().get(0).getField(), "422 spec.height");
    trees.withName("oak").editStatus(tree -> {
      tree.setStatus(new Tree.Status());
      tree.getStatus().leaves = 7;
      return tree;
    });
    Tree read = trees.withName("oak").get();
    equal(read.getStatus().leaves, 7);
    equal(read.getMetadata().getGeneration(), 1L);
    Tree edited = trees.withName("oak").edit(tree -> {
      tree.getSpec().height = 4;
      return tree;
    });
    equal(edited.getMetadata().getGeneration(), 2L);
    equal(client.genericKubernetesResources(GROUP + "/v1", "Tree").inNamespace(namespace).list().getItems().size(), 1);
    trees.withName("oak").delete();
    eventually("it is gone", () -> trees.withName("oak").get() == null);
  }

  private void pages() {
    for (int i = 0; i < 10; i++) {
      client.resource(configMap("page-" + i, Map.of(), "pages")).create();
    }
    List<String> names = new ArrayList<>();
    int pages = 0;
    String token = null;
    do {
      var options = new io.fabric8.kubernetes.api.model.ListOptionsBuilder().withLabelSelector("test=pages").withLimit(4L).withContinue(token).build();
      var page = client.configMaps().inNamespace(namespace).list(options);
      names.addAll(page.getItems().stream().map(map -> map.getMetadata().getName()).collect(Collectors.toList()));
      token = page.getMetadata().getContinue();
      pages++;
    } while (token != null && !token.isEmpty());
    equal(pages + " pages, " + names.size() + " items, last " + names.get(9), "3 pages, 10 items, last page-9");
  }

  private void leaderElection() throws Exception {
    BlockingQueue<String> leaders = new LinkedBlockingQueue<>();
    CompletableFuture<?> first = candidate("first", leaders);
    equal(next(leaders), "first");
    CompletableFuture<?> second = candidate("second", leaders);
    first.cancel(true);
    equal(next(leaders), "second");
    var lease = client.leases().inNamespace(namespace).withName("leader");
    eventually("the lease is the second's", () -> "second".equals(lease.get().getSpec().getHolderIdentity()));
    second.cancel(true);
  }

  private CompletableFuture<?> candidate(String name, BlockingQueue<String> leaders) {
    return client.leaderElector().withConfig(new LeaderElectionConfigBuilder().withName(name)
        .withLock(new LeaseLock(namespace, "leader", name)).withReleaseOnCancel(true)
        .withLeaseDuration(Duration.ofSeconds(15)).withRenewDeadline(Duration.ofSeconds(10)).withRetryPeriod(Duration.ofMillis(200))
        .withLeaderCallbacks(new LeaderCallbacks(() -> leaders.add(name), () -> { }, leader -> { })).build()).build().start();
  }

  private ConfigMap named(String name) {
    return client.configMaps().inNamespace(namespace).withName(name).get();
  }

  private ConfigMap configMap(String name, Map<String, String> data) {
    return new ConfigMapBuilder().withNewMetadata().withNamespace(namespace).withName(name).endMetadata().withData(data).build();
  }

  private ConfigMap configMap(String name, Map<String, String> data, String label) {
    return new ConfigMapBuilder(configMap(name, data)).editMetadata().addToLabels("test", label).endMetadata().build();
  }

  private static String unique() {
    return UUID.randomUUID().toString().substring(0, 8);
  }

  private static String next(BlockingQueue<String> news) throws InterruptedException {
    return news.poll(PATIENCE, TimeUnit.SECONDS);
  }

  private static void equal(Object got, Object wanted) {
    if (!Objects.equals(got, wanted)) {
      throw new AssertionError("got " + got + ", want " + wanted);
    }
  }

  private static KubernetesClientException fails(Test test) {
    try {
      test.run();
    } catch (KubernetesClientException problem) {
      return problem;
    } catch (Exception problem) {
      throw new AssertionError("not an answer of the server", problem);
    }
    throw new AssertionError("it did not fail");
  }

  private static void eventually(String what, BooleanSupplier holds) {
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE);
    while (!holds.getAsBoolean()) {
      if (System.nanoTime() > deadline) {
        throw new AssertionError("not after " + PATIENCE + " seconds: " + what);
      }
      Thread.onSpinWait();
    }
  }
}
