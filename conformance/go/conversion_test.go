package conformance

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// Hub makes v1 the version that others are converted by way of.
func (*Greeting) Hub() {}

// GreetingV2 is a Greeting in its second version: words in a list, below a message.
type GreetingV2 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec GreetingV2Spec `json:"spec"`
}

type GreetingV2Spec struct {
	Message Message `json:"message"`
}

type Message struct {
	Words  []string `json:"words"`
	Volume int      `json:"volume,omitempty"`
}

type GreetingV2List struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []GreetingV2 `json:"items"`
}

func (g *GreetingV2) DeepCopyObject() runtime.Object {
	copied := *g
	g.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	copied.Spec.Message.Words = append([]string(nil), g.Spec.Message.Words...)
	return &copied
}

func (l *GreetingV2List) DeepCopyObject() runtime.Object {
	copied := *l
	l.ListMeta.DeepCopyInto(&copied.ListMeta)
	copied.Items = make([]GreetingV2, len(l.Items))
	for i := range l.Items {
		copied.Items[i] = *l.Items[i].DeepCopyObject().(*GreetingV2)
	}
	return &copied
}

func (g *GreetingV2) ConvertTo(hub conversion.Hub) error {
	to := hub.(*Greeting)
	if len(g.Spec.Message.Words) == 0 {
		return fmt.Errorf("%s says nothing", g.Name)
	}
	to.ObjectMeta = g.ObjectMeta
	to.Spec = GreetingSpec{Text: strings.Join(g.Spec.Message.Words, " "), Volume: g.Spec.Message.Volume}
	return nil
}

func (g *GreetingV2) ConvertFrom(hub conversion.Hub) error {
	from := hub.(*Greeting)
	g.ObjectMeta = from.ObjectMeta
	g.Spec.Message = Message{Words: strings.Fields(from.Spec.Text), Volume: from.Spec.Volume}
	return nil
}

// TestWebhooksConvert has envtest send the conversions of a definition to a manager whose types say how, as suites made with kubebuilder
// do for kinds with two versions.
func TestWebhooksConvert(t *testing.T) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Fatal("KUBEBUILDER_ASSETS does not name a folder of binaries")
	}
	both, second := scheme(), schema.GroupVersion{Group: greetings.Group, Version: "v2"}
	both.AddKnownTypeWithName(second.WithKind("Greeting"), &GreetingV2{})
	both.AddKnownTypeWithName(second.WithKind("GreetingList"), &GreetingV2List{})
	metav1.AddToGroupVersion(both, second)
	environment := &envtest.Environment{Scheme: both, CRDDirectoryPaths: []string{"crds-converted"}, ErrorIfCRDPathMissing: true}
	config, err := environment.Start()
	must(t, err)
	defer func() { _ = environment.Stop() }()
	install := environment.WebhookInstallOptions
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  both,
		Metrics: metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: install.LocalServingHost, Port: install.LocalServingPort, CertDir: install.LocalServingCertDir,
		}),
	})
	must(t, err)
	must(t, ctrl.NewWebhookManagedBy(mgr, &Greeting{}).Complete())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	defer func() { cancel(); <-ended }()

	p := placeAt(t, config)
	direct, err := client.New(config, client.Options{Scheme: both})
	must(t, err)
	at := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: p.namespace, Name: name} }
	key := func(name string) types.NamespacedName {
		return types.NamespacedName{Namespace: p.namespace, Name: name}
	}

	definition := &unstructured.Unstructured{}
	definition.SetAPIVersion("apiextensions.k8s.io/v1")
	definition.SetKind("CustomResourceDefinition")
	must(t, direct.Get(ctx, client.ObjectKey{Name: "greetings.conformance.watchkeeper.dev"}, definition))
	strategy, _, err := unstructured.NestedString(definition.Object, "spec", "conversion", "strategy")
	must(t, err)
	equal(t, strategy, "Webhook", "what envtest makes of the definition")

	old := &Greeting{ObjectMeta: at("old"), Spec: GreetingSpec{Text: "hello there", Volume: 7}}
	must(t, direct.Create(ctx, old))
	seen := &GreetingV2{}
	// Until the manager serves, calls are refused.
	eventually(t, "the first version is read in the second", func() bool { return direct.Get(ctx, key("old"), seen) == nil })
	equal(t, fmt.Sprint(seen.Spec.Message), "{[hello there] 7}", "a message")
	equal(t, seen.UID, old.UID, "it is the same object")

	recent := &GreetingV2{ObjectMeta: at("recent"), Spec: GreetingV2Spec{Message: Message{Words: []string{"good", "evening"}}}}
	recent.Labels = map[string]string{"time": "evening"}
	must(t, direct.Create(ctx, recent))
	stored := &Greeting{}
	must(t, direct.Get(ctx, key("recent"), stored))
	equal(t, stored.Spec.Text, "good evening", "the second version in the first")
	equal(t, stored.Labels["time"], "evening", "labels")

	seen.Spec.Message.Words = append(seen.Spec.Message.Words, "again")
	must(t, direct.Update(ctx, seen))
	must(t, direct.Patch(ctx, seen, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"message":{"volume":3}}}`))))
	equal(t, fmt.Sprint(seen.Spec.Message), "{[hello there again] 3}", "what was updated and patched")
	must(t, direct.Get(ctx, key("old"), old))
	equal(t, fmt.Sprint(old.Spec), "{hello there again 3}", "the same in the first version")

	list := &GreetingV2List{}
	must(t, direct.List(ctx, list, client.InNamespace(p.namespace)))
	equal(t, len(list.Items), 2, "how many there are in the second version")
	// What a controller sees comes from a watch in its version.
	cached := &GreetingV2{}
	eventually(t, "the cache has it in the second version", func() bool {
		return mgr.GetClient().Get(ctx, key("old"), cached) == nil && cached.Spec.Message.Volume == 3
	})
	must(t, direct.Patch(ctx, old, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"volume":9}}`))))
	eventually(t, "a change in the first version is watched in the second", func() bool {
		return mgr.GetClient().Get(ctx, key("old"), cached) == nil && cached.Spec.Message.Volume == 9
	})

	err = direct.Create(ctx, &GreetingV2{ObjectMeta: at("silent"), Spec: GreetingV2Spec{Message: Message{Words: []string{}}}})
	if err == nil || !strings.Contains(err.Error(), "conversion webhook for conformance.watchkeeper.dev/v2, Kind=Greeting failed: ") || !strings.HasSuffix(err.Error(), "silent says nothing") {
		t.Errorf("what cannot be converted: %v", err)
	}
	must(t, direct.Delete(ctx, recent))
	must(t, direct.Delete(ctx, old))
}
