package conformance

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	applyapps "k8s.io/client-go/applyconfigurations/apps/v1"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/util/retry"
)

func TestProtobufAndJSONClientsSeeTheSameObjects(t *testing.T) {
	p := newPlace(t)
	other, err := kubernetes.NewForConfig(protobuf(p.config))
	must(t, err)
	replicas := int32(3)
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"app": "web"}},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx"}}},
			},
		},
	}
	created, err := other.AppsV1().Deployments(p.namespace).Create(p.context, deployment, metav1.CreateOptions{})
	must(t, err)
	equal(t, created.Spec.Template.Spec.Containers[0].TerminationMessagePath, "/dev/termination-log", "a default")
	read, err := p.clients.AppsV1().Deployments(p.namespace).Get(p.context, "web", metav1.GetOptions{})
	must(t, err)
	equal(t, equality.Semantic.DeepEqual(created, read), true, "the object is the same as protobuf and as JSON")
	_, err = other.AppsV1().Deployments(p.namespace).Create(p.context, deployment, metav1.CreateOptions{})
	equal(t, apierrors.IsAlreadyExists(err), true, "a second create is refused")
	list, err := other.AppsV1().Deployments(p.namespace).List(p.context, metav1.ListOptions{LabelSelector: "app=web"})
	must(t, err)
	equal(t, len(list.Items), 1, "items")
	must(t, other.AppsV1().Deployments(p.namespace).Delete(p.context, "web", metav1.DeleteOptions{}))
	_, err = other.AppsV1().Deployments(p.namespace).Get(p.context, "web", metav1.GetOptions{})
	equal(t, apierrors.IsNotFound(err), true, "what is deleted is not found")
}

func TestApplyConfigurationsOwnWhatTheyApply(t *testing.T) {
	p := newPlace(t)
	maps := p.clients.CoreV1().ConfigMaps(p.namespace)
	apply := func(manager string, force bool, data map[string]string) (*corev1.ConfigMap, error) {
		return maps.Apply(p.context, applycore.ConfigMap("shared", p.namespace).WithData(data),
			metav1.ApplyOptions{FieldManager: manager, Force: force})
	}
	_, err := apply("first", false, map[string]string{"a": "1", "b": "1"})
	must(t, err)
	_, err = apply("second", false, map[string]string{"b": "2"})
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `conflict with "first"`) {
		t.Fatalf("not a conflict with the first: %v", err)
	}
	_, err = apply("second", true, map[string]string{"b": "2"})
	must(t, err)
	applied, err := apply("first", false, map[string]string{})
	must(t, err)
	equal(t, fmt.Sprint(applied.Data), "map[b:2]", "what is left when the first lets go")
	extracted, err := applycore.ExtractConfigMap(applied, "second")
	must(t, err)
	equal(t, fmt.Sprint(extracted.Data), "map[b:2]", "what the second owns")

	deployment := func(containers ...*applycore.ContainerApplyConfiguration) *applyapps.DeploymentApplyConfiguration {
		return applyapps.Deployment("web", p.namespace).WithSpec(applyapps.DeploymentSpec().
			WithSelector(applymeta.LabelSelector().WithMatchLabels(map[string]string{"app": "web"})).
			WithTemplate(applycore.PodTemplateSpec().WithLabels(map[string]string{"app": "web"}).
				WithSpec(applycore.PodSpec().WithContainers(containers...))))
	}
	container := func(name string) *applycore.ContainerApplyConfiguration {
		return applycore.Container().WithName(name).WithImage(name)
	}
	deployments := p.clients.AppsV1().Deployments(p.namespace)
	options := metav1.ApplyOptions{FieldManager: "first"}
	_, err = deployments.Apply(p.context, deployment(container("main")), options)
	must(t, err)
	_, err = deployments.Apply(p.context, deployment(container("sidecar")), metav1.ApplyOptions{FieldManager: "second"})
	must(t, err)
	merged, err := deployments.Apply(p.context, deployment(container("main").WithImage("newer")), options)
	must(t, err)
	equal(t, len(merged.Spec.Template.Spec.Containers), 2, "containers of both")
	equal(t, merged.Spec.Template.Spec.Containers[0].Image, "newer", "the image of the first")
	equal(t, merged.Generation, int64(3), "generation")
}

func TestConflictsAreRetriedUntilEveryWriteCounts(t *testing.T) {
	p := newPlace(t)
	p.create("counter", map[string]string{})
	maps := p.clients.CoreV1().ConfigMaps(p.namespace)
	const writers, writes = 4, 10
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for range writes {
				many := retry.DefaultBackoff
				many.Steps = 1000
				err := retry.RetryOnConflict(many, func() error {
					counter, err := maps.Get(p.context, "counter", metav1.GetOptions{})
					if err != nil {
						return err
					}
					counter.Data = map[string]string{"ticks": counter.Data["ticks"] + "x"}
					_, err = maps.Update(p.context, counter, metav1.UpdateOptions{})
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	equal(t, len(p.get("counter").Data["ticks"]), writers*writes, "writes that count")
}

func TestDiscoveryMapsKindsToResources(t *testing.T) {
	p := newPlace(t)
	define(t, p.config)
	client, err := discovery.NewDiscoveryClientForConfig(p.config)
	must(t, err)
	version, err := client.ServerVersion()
	must(t, err)
	equal(t, version.Major, "1", "major version")
	groups, err := restmapper.GetAPIGroupResources(client)
	must(t, err)
	for name, mapper := range map[string]meta.RESTMapper{
		"discovered": restmapper.NewDiscoveryRESTMapper(groups),
		"deferred":   restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client)),
		"shortcuts":  restmapper.NewShortcutExpander(restmapper.NewDiscoveryRESTMapper(groups), client, nil),
	} {
		mapping, err := mapper.RESTMapping(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "v1")
		must(t, err)
		equal(t, mapping.Resource.Resource, "deployments", name)
		equal(t, mapping.Scope.Name(), meta.RESTScopeNameNamespace, name)
		mapping, err = mapper.RESTMapping(schema.GroupKind{Group: greetings.Group, Kind: "Greeting"})
		must(t, err)
		equal(t, mapping.Resource, greetings, name)
		if name == "shortcuts" {
			found, err := mapper.ResourceFor(schema.GroupVersionResource{Resource: "hi"})
			must(t, err)
			equal(t, found, greetings, "the short name")
		}
		_, err = mapper.RESTMapping(schema.GroupKind{Group: "apps", Kind: "Nonsense"})
		equal(t, meta.IsNoMatchError(err), true, "a kind that does not exist")
	}
	eventually(t, "the definition has an OpenAPI document", func() bool {
		documents, err := client.OpenAPIV3().Paths()
		must(t, err)
		return documents["apis/"+greetings.Group+"/v1"] != nil
	})
}

func TestPagesAddUpToTheList(t *testing.T) {
	p := newPlace(t)
	const objects = 20
	for i := range objects {
		p.create(fmt.Sprintf("item-%02d", i), nil)
	}
	seen := &requests{}
	clients, err := kubernetes.NewForConfig(seen.watch(p.config))
	must(t, err)
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return clients.CoreV1().ConfigMaps(p.namespace).List(ctx, options)
	})
	pages.PageSize = 7
	var names []string
	must(t, pages.EachListItem(p.context, metav1.ListOptions{FieldSelector: "metadata.name!=kube-root-ca.crt"}, func(object runtime.Object) error {
		names = append(names, object.(*corev1.ConfigMap).Name)
		return nil
	}))
	equal(t, len(names), objects, "items")
	equal(t, names[objects-1], "item-19", "the last")
	equal(t, len(seen.with("limit=7")), 3, "pages")
}

func TestCustomResourcesAreValidatedAndDefaulted(t *testing.T) {
	p := newPlace(t)
	define(t, p.config)
	client, err := dynamic.NewForConfig(p.config)
	must(t, err)
	resource := client.Resource(greetings).Namespace(p.namespace)
	greeting := func(name string, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": greetings.GroupVersion().String(), "kind": "Greeting",
			"metadata": map[string]any{"name": name}, "spec": spec,
		}}
	}
	created, err := resource.Create(p.context, greeting("hello", map[string]any{"text": "hello", "unknown": true}), metav1.CreateOptions{})
	must(t, err)
	volume, _, _ := unstructured.NestedInt64(created.Object, "spec", "volume")
	equal(t, volume, int64(5), "the default")
	_, unknown, _ := unstructured.NestedBool(created.Object, "spec", "unknown")
	equal(t, unknown, false, "a field that is not in the schema stays")
	_, err = resource.Create(p.context, greeting("loud", map[string]any{"text": "", "volume": int64(12)}), metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) {
		t.Fatalf("not invalid: %v", err)
	}
	status := err.(apierrors.APIStatus).Status()
	equal(t, len(status.Details.Causes), 2, "causes in "+err.Error())
	_, err = resource.Create(p.context, greeting("strict", map[string]any{"text": "x", "unknown": true}),
		metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	equal(t, apierrors.IsBadRequest(err), true, "strict validation refuses unknown fields")
	must(t, unstructured.SetNestedField(created.Object, "page-1", "status", "page"))
	updated, err := resource.UpdateStatus(p.context, created, metav1.UpdateOptions{})
	must(t, err)
	equal(t, updated.GetGeneration(), int64(1), "generation after a write of the status")
}
