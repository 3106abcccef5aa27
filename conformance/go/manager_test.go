package conformance

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const finalizer = "conformance.watchkeeper.dev/farewell"

// greeter writes the text of a Greeting into a ConfigMap, and says farewell when it goes.
type greeter struct{ client.Client }

func (g *greeter) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	greeting := &Greeting{}
	if err := g.Get(ctx, request.NamespacedName, greeting); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !greeting.DeletionTimestamp.IsZero() {
		farewell := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: request.Namespace, Name: "farewell-" + request.Name}}
		if err := g.Create(ctx, farewell); client.IgnoreAlreadyExists(err) != nil {
			return ctrl.Result{}, err
		}
		if controllerutil.RemoveFinalizer(greeting, finalizer) {
			return ctrl.Result{}, g.Update(ctx, greeting)
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(greeting, finalizer) {
		if err := g.Update(ctx, greeting); err != nil {
			return ctrl.Result{}, err
		}
	}
	page := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: request.Namespace, Name: request.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, g, page, func() error {
		page.Data = map[string]string{"text": greeting.Spec.Text}
		return controllerutil.SetControllerReference(greeting, page, g.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	before := greeting.DeepCopyObject().(*Greeting)
	greeting.Status = GreetingStatus{Page: page.Name, ObservedGeneration: greeting.Generation}
	return ctrl.Result{}, g.Status().Patch(ctx, greeting, client.MergeFrom(before))
}

// manage runs a manager with a greeter until the test ends.
func manage(p *place, options manager.Options) manager.Manager {
	p.Helper()
	twice := true
	options.Scheme = scheme()
	options.Metrics = server.Options{BindAddress: "0"}
	options.Controller = config.Controller{SkipNameValidation: &twice}
	options.Cache.DefaultNamespaces = map[string]cache.Config{p.namespace: {}}
	manager, err := ctrl.NewManager(p.config, options)
	must(p.T, err)
	must(p.T, ctrl.NewControllerManagedBy(manager).For(&Greeting{}).Owns(&corev1.ConfigMap{}).Complete(&greeter{manager.GetClient()}))
	ctx, stop := context.WithCancel(p.context)
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	p.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			p.Error(err)
		}
	})
	return manager
}

func TestAManagerKeepsWhatItsControllerOwns(t *testing.T) {
	p := newPlace(t)
	define(t, p.config)
	keepsWhatItOwns(p, manager.Options{})
}

func TestAManagerWithAnElectionDoesTheSame(t *testing.T) {
	p := newPlace(t)
	define(t, p.config)
	keepsWhatItOwns(p, manager.Options{
		LeaderElection: true, LeaderElectionID: "greeter", LeaderElectionNamespace: p.namespace, LeaderElectionReleaseOnCancel: true,
	})
}

func keepsWhatItOwns(p *place, options manager.Options) {
	manage(p, options)
	direct, err := client.New(p.config, client.Options{Scheme: scheme()})
	must(p.T, err)
	key := client.ObjectKey{Namespace: p.namespace, Name: "hello"}
	greeting := &Greeting{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Spec: GreetingSpec{Text: "hello"}}
	must(p.T, direct.Create(p.context, greeting))
	equal(p.T, greeting.Spec.Volume, 5, "the default comes back with the answer")

	says := func(text string) func() bool {
		return func() bool {
			page := &corev1.ConfigMap{}
			err := direct.Get(p.context, key, page)
			must(p.T, client.IgnoreNotFound(err))
			return err == nil && page.Data["text"] == text && page.DeletionTimestamp.IsZero()
		}
	}
	eventually(p.T, "the page is written", says("hello"))
	eventually(p.T, "the status says so", func() bool {
		must(p.T, direct.Get(p.context, key, greeting))
		return greeting.Status == GreetingStatus{Page: "hello", ObservedGeneration: 1}
	})
	page := &corev1.ConfigMap{}
	must(p.T, direct.Get(p.context, key, page))
	equal(p.T, metav1.IsControlledBy(page, greeting), true, "the page is the greeting's")

	must(p.T, direct.Patch(p.context, page, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"text":"graffiti"}}`))))
	eventually(p.T, "the page is mended", says("hello"))
	must(p.T, direct.Delete(p.context, page))
	eventually(p.T, "the page is written again", says("hello"))

	changed := greeting.DeepCopyObject().(*Greeting)
	changed.Spec.Text = "goodbye"
	must(p.T, direct.Patch(p.context, changed, client.MergeFrom(greeting)))
	eventually(p.T, "the page follows", says("goodbye"))
	eventually(p.T, "and the status", func() bool {
		must(p.T, direct.Get(p.context, key, greeting))
		return greeting.Status.ObservedGeneration == 2
	})

	must(p.T, direct.Delete(p.context, greeting))
	eventually(p.T, "the greeting is gone", func() bool {
		return apierrors.IsNotFound(direct.Get(p.context, key, greeting))
	})
	must(p.T, direct.Get(p.context, client.ObjectKey{Namespace: p.namespace, Name: "farewell-hello"}, page))
}

func TestACacheHoldsWhatItWasAskedForAndFindsItByIndex(t *testing.T) {
	p := newPlace(t)
	options := manager.Options{
		Scheme:  scheme(),
		Metrics: server.Options{BindAddress: "0"},
		Cache: cache.Options{
			DefaultNamespaces: map[string]cache.Config{p.namespace: {}},
			ByObject:          map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {Label: labels.SelectorFromSet(labels.Set{"mine": "yes"})}},
		},
	}
	manager, err := ctrl.NewManager(p.config, options)
	must(t, err)
	must(t, manager.GetFieldIndexer().IndexField(p.context, &corev1.ConfigMap{}, "color", func(object client.Object) []string {
		return []string{object.(*corev1.ConfigMap).Data["color"]}
	}))
	go func() { _ = manager.Start(p.context) }()

	direct, err := client.New(p.config, client.Options{Scheme: scheme()})
	must(t, err)
	make := func(name, color, mine string) *corev1.ConfigMap {
		object := p.configMap(name, map[string]string{"color": color})
		object.Labels = map[string]string{"mine": mine}
		must(t, direct.Create(p.context, object))
		return object
	}
	red := make("red", "red", "yes")
	make("also-red", "red", "yes")
	make("blue", "blue", "yes")
	make("not-mine", "red", "no")
	found := func(color string) int {
		list := &corev1.ConfigMapList{}
		must(t, manager.GetClient().List(p.context, list, client.InNamespace(p.namespace), client.MatchingFields{"color": color}))
		return len(list.Items)
	}
	if !manager.GetCache().WaitForCacheSync(p.context) {
		t.Fatal("the cache does not sync")
	}
	eventually(t, "two are red", func() bool { return found("red") == 2 && found("blue") == 1 })
	red.Data["color"] = "blue"
	must(t, direct.Update(p.context, red))
	eventually(t, "one became blue", func() bool { return found("red") == 1 && found("blue") == 2 })
	red.Labels["mine"] = "no"
	must(t, direct.Update(p.context, red))
	eventually(t, "and then it is no longer mine", func() bool { return found("blue") == 1 })
	equal(t, apierrors.IsNotFound(manager.GetClient().Get(p.context, client.ObjectKeyFromObject(red), red)), true, "it is in the cache no more")
}
