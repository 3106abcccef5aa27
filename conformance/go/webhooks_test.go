package conformance

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// politeness completes and judges Greetings, as a project made with kubebuilder does.
type politeness struct{}

func (politeness) Default(_ context.Context, greeting *Greeting) error {
	if greeting.Spec.Volume == 0 {
		greeting.Spec.Volume = 5
	}
	return nil
}

func (politeness) ValidateCreate(_ context.Context, greeting *Greeting) (admission.Warnings, error) {
	if strings.Contains(greeting.Spec.Text, "!") {
		return nil, fmt.Errorf("no shouting")
	}
	return admission.Warnings{"be brief"}, nil
}

func (politeness) ValidateUpdate(_ context.Context, old, greeting *Greeting) (admission.Warnings, error) {
	if old.Spec.Text != greeting.Spec.Text {
		return nil, fmt.Errorf("what was said cannot be unsaid: %q", old.Spec.Text)
	}
	return nil, nil
}

func (politeness) ValidateDelete(_ context.Context, greeting *Greeting) (admission.Warnings, error) {
	if greeting.Name == "forever" {
		return nil, fmt.Errorf("it stays")
	}
	return nil, nil
}

// TestWebhooks has envtest install webhook configurations and a manager serve them, as suites made with kubebuilder do.
func TestWebhooks(t *testing.T) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Fatal("KUBEBUILDER_ASSETS does not name a folder of binaries")
	}
	none, path := admissionregistrationv1.SideEffectClassNone, func(path string) *string { return &path }
	rules := func(operations ...admissionregistrationv1.OperationType) []admissionregistrationv1.RuleWithOperations {
		return []admissionregistrationv1.RuleWithOperations{{Operations: operations, Rule: admissionregistrationv1.Rule{
			APIGroups: []string{greetings.Group}, APIVersions: []string{greetings.Version}, Resources: []string{greetings.Resource},
		}}}
	}
	service := func(at string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "system", Name: "webhook", Path: path(at)}}
	}
	environment := &envtest.Environment{
		CRDDirectoryPaths: []string{"crds"}, ErrorIfCRDPathMissing: true,
		WebhookInstallOptions: envtest.WebhookInstallOptions{
			MutatingWebhooks: []*admissionregistrationv1.MutatingWebhookConfiguration{{
				TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "MutatingWebhookConfiguration"},
				ObjectMeta: metav1.ObjectMeta{Name: "greetings"},
				Webhooks: []admissionregistrationv1.MutatingWebhook{{
					Name: "default.greetings.dev", SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
					ClientConfig: service("/mutate-conformance-watchkeeper-dev-v1-greeting"),
					Rules:        rules(admissionregistrationv1.Create, admissionregistrationv1.Update),
				}},
			}},
			ValidatingWebhooks: []*admissionregistrationv1.ValidatingWebhookConfiguration{{
				TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration"},
				ObjectMeta: metav1.ObjectMeta{Name: "greetings"},
				Webhooks: []admissionregistrationv1.ValidatingWebhook{{
					Name: "judge.greetings.dev", SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
					ClientConfig: service("/validate-conformance-watchkeeper-dev-v1-greeting"),
					Rules:        rules(admissionregistrationv1.OperationAll),
				}},
			}},
		},
	}
	config, err := environment.Start()
	must(t, err)
	defer func() { _ = environment.Stop() }()
	install := environment.WebhookInstallOptions
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme(),
		Metrics: metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: install.LocalServingHost, Port: install.LocalServingPort, CertDir: install.LocalServingCertDir,
		}),
	})
	must(t, err)
	must(t, ctrl.NewWebhookManagedBy(mgr, &Greeting{}).WithDefaulter(politeness{}).WithValidator(politeness{}).Complete())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	defer func() { cancel(); <-ended }()

	p := placeAt(t, config)
	direct, err := client.New(config, client.Options{Scheme: scheme()})
	must(t, err)
	greeting := func(name, text string) *Greeting {
		return &Greeting{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: name}, Spec: GreetingSpec{Text: text}}
	}
	// Until the manager serves, calls are refused.
	hello := greeting("forever", "hello")
	eventually(t, "a greeting is made", func() bool { return direct.Create(ctx, hello) == nil })
	equal(t, hello.Spec.Volume, 5, "what the webhook fills in")

	err = direct.Create(ctx, greeting("loud", "hello!"))
	equal(t, err.Error(), `admission webhook "judge.greetings.dev" denied the request: no shouting`, "what is said about shouting")
	equal(t, apierrors.IsForbidden(err), true, "and how")
	hello.Spec.Text = "goodbye"
	err = direct.Update(ctx, hello)
	equal(t, err.Error(), `admission webhook "judge.greetings.dev" denied the request: what was said cannot be unsaid: "hello"`, "an update")
	err = direct.Delete(ctx, hello)
	equal(t, err.Error(), `admission webhook "judge.greetings.dev" denied the request: it stays`, "a deletion")
	must(t, direct.Create(ctx, greeting("brief", "hi")))
	must(t, direct.Delete(ctx, greeting("brief", "hi")))
}
