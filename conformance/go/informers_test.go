package conformance

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

// makeInformer makes an informer for the ConfigMaps of a namespace that have the label mine=yes.
type makeInformer func(t *testing.T, config *rest.Config, namespace string) cache.SharedIndexInformer

func mine(options *metav1.ListOptions) { options.LabelSelector = "mine=yes" }

func typedInformer(t *testing.T, config *rest.Config, namespace string) cache.SharedIndexInformer {
	clients, err := kubernetes.NewForConfig(config)
	must(t, err)
	factory := informers.NewSharedInformerFactoryWithOptions(clients, 0,
		informers.WithNamespace(namespace), informers.WithTweakListOptions(mine))
	return factory.Core().V1().ConfigMaps().Informer()
}

func dynamicInformer(t *testing.T, config *rest.Config, namespace string) cache.SharedIndexInformer {
	client, err := dynamic.NewForConfig(config)
	must(t, err)
	return dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, namespace, mine).ForResource(configMaps).Informer()
}

func metadataInformer(t *testing.T, config *rest.Config, namespace string) cache.SharedIndexInformer {
	client, err := metadata.NewForConfig(config)
	must(t, err)
	return metadatainformer.NewFilteredSharedInformerFactory(client, 0, namespace, mine).ForResource(configMaps).Informer()
}

func TestInformersFollowTheServer(t *testing.T) {
	for _, kind := range []struct {
		name string
		make makeInformer
	}{{"typed", typedInformer}, {"dynamic", dynamicInformer}, {"metadata", metadataInformer}} {
		t.Run(kind.name+" JSON", func(t *testing.T) { informerFollows(newPlace(t), kind.make, false) })
		t.Run(kind.name+" protobuf", func(t *testing.T) { informerFollows(newPlace(t), kind.make, true) })
	}
}

func informerFollows(p *place, make makeInformer, asProtobuf bool) {
	for i := range 3 {
		p.labelled(fmt.Sprintf("early-%d", i))
	}
	p.create("not-mine", nil)

	seen := &requests{}
	config := seen.watch(p.config)
	if asProtobuf {
		config = protobuf(config)
	}
	informer := make(p.T, config, p.namespace)
	news := &news{}
	registration, err := informer.AddEventHandler(news)
	must(p.T, err)
	go informer.RunWithContext(p.context)
	if !cache.WaitForCacheSync(p.context.Done(), registration.HasSynced) {
		p.Fatal("not synced")
	}
	first := news.all()
	slices.Sort(first) // no order is promised here
	equal(p.T, fmt.Sprint(first), "[added early-0 added early-1 added early-2]", "what came first")
	if len(seen.with("sendInitialEvents=true")) == 0 {
		p.Errorf("the first state was not streamed: %v", seen.with("configmaps"))
	}

	maps := p.clients.CoreV1().ConfigMaps(p.namespace)
	p.labelled("late")
	changed := p.get("early-0")
	changed.Data = map[string]string{"changed": "yes"}
	_, err = maps.Update(p.context, changed, metav1.UpdateOptions{})
	must(p.T, err)
	leaves := p.get("early-1")
	leaves.Labels = nil
	_, err = maps.Update(p.context, leaves, metav1.UpdateOptions{})
	must(p.T, err)
	must(p.T, maps.Delete(p.context, "early-2", metav1.DeleteOptions{}))

	eventually(p.T, "the last change arrives", func() bool { return len(news.all()) == 7 })
	equal(p.T, fmt.Sprint(news.all()[3:]), "[added late updated early-0 deleted early-1 deleted early-2]", "what came then")
	for _, name := range []string{"early-0", "late"} {
		cached, exists, err := informer.GetStore().GetByKey(p.namespace + "/" + name)
		must(p.T, err)
		if !exists {
			p.Fatalf("%s is not in the store", name)
		}
		accessor, err := meta.Accessor(cached)
		must(p.T, err)
		equal(p.T, accessor.GetResourceVersion(), p.get(name).ResourceVersion, "resourceVersion of "+name)
		if typed, ok := cached.(*corev1.ConfigMap); ok && name == "early-0" {
			equal(p.T, typed.Data["changed"], "yes", "data of early-0")
		}
	}
	equal(p.T, len(informer.GetStore().ListKeys()), 2, "objects in the store")
}

func (p *place) labelled(name string) {
	p.Helper()
	object := p.configMap(name, map[string]string{"key": "value"})
	object.Labels = labels.Set{"mine": "yes"}
	_, err := p.clients.CoreV1().ConfigMaps(p.namespace).Create(p.context, object, metav1.CreateOptions{})
	must(p.T, err)
}

func (p *place) get(name string) *corev1.ConfigMap {
	p.Helper()
	object, err := p.clients.CoreV1().ConfigMaps(p.namespace).Get(p.context, name, metav1.GetOptions{})
	must(p.T, err)
	return object
}

// news keeps what an informer said.
type news struct {
	sync.Mutex
	lines []string
}

func (n *news) say(verb string, object any) {
	n.Lock()
	defer n.Unlock()
	accessor, err := meta.Accessor(object.(runtime.Object))
	if err != nil {
		n.lines = append(n.lines, err.Error())
		return
	}
	n.lines = append(n.lines, verb+" "+accessor.GetName())
}

func (n *news) all() []string {
	n.Lock()
	defer n.Unlock()
	return append([]string(nil), n.lines...)
}

func (n *news) OnAdd(object any, _ bool) { n.say("added", object) }
func (n *news) OnUpdate(_, object any)   { n.say("updated", object) }
func (n *news) OnDelete(object any)      { n.say("deleted", object) }
