// Package conformance uses an API server as programs in Go do: through client-go, controller-runtime and envtest.
//
// KUBECONFIG names the server, and KUBEBUILDER_ASSETS the folder from which envtest starts one of its own.
// WATCHKEEPER_CONFORMANCE_HAS lists what they have beyond a bare kube-apiserver: "controllers" that collect garbage
// and end namespaces, "authorization" by roles.
package conformance

import (
	"context"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const patience = 60 * time.Second

func TestMain(m *testing.M) {
	klog.SetOutput(os.Stderr)
	klog.LogToStderr(false)
	ctrl.SetLogger(klog.Background())
	os.Exit(m.Run())
}

// has tells whether the server has what a test needs, and skips the test otherwise.
func has(t *testing.T, need string) {
	t.Helper()
	if !slices.Contains(strings.Split(os.Getenv("WATCHKEEPER_CONFORMANCE_HAS"), ","), need) {
		t.Skipf("the server has no %s", need)
	}
}

// place is a namespace of a running server.
type place struct {
	*testing.T
	context   context.Context
	config    *rest.Config
	clients   *kubernetes.Clientset
	namespace string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	file := os.Getenv("KUBECONFIG")
	if file == "" {
		t.Fatal("KUBECONFIG does not name a server")
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	must(t, err)
	return placeAt(t, config)
}

func placeAt(t *testing.T, config *rest.Config) *place {
	t.Helper()
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 1000, 2000
	clients, err := kubernetes.NewForConfig(config)
	must(t, err)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "go-"}}
	namespace, err = clients.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	must(t, err)
	return &place{t, t.Context(), config, clients, namespace.Name}
}

// protobuf has typed clients send protobuf and ask for it, as controllers do that are built into Kubernetes.
func protobuf(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	return config
}

func (p *place) configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: p.namespace}, Data: data}
}

func (p *place) create(name string, data map[string]string) *corev1.ConfigMap {
	p.Helper()
	created, err := p.clients.CoreV1().ConfigMaps(p.namespace).Create(p.context, p.configMap(name, data), metav1.CreateOptions{})
	must(p.T, err)
	return created
}

// define installs the definition of Greetings.
func define(t *testing.T, config *rest.Config) {
	t.Helper()
	_, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{"crds"}, ErrorIfPathMissing: true})
	must(t, err)
}

// requests counts what goes to a server.
type requests struct {
	sync.Mutex
	urls []string
}

func (r *requests) watch(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(request *http.Request) (*http.Response, error) {
			r.Lock()
			r.urls = append(r.urls, request.Method+" "+request.URL.String())
			r.Unlock()
			return next.RoundTrip(request)
		})
	})
	return config
}

// with returns the requests that have a text in their method or URL.
func (r *requests) with(text string) []string {
	r.Lock()
	defer r.Unlock()
	var found []string
	for _, url := range r.urls {
		if strings.Contains(url, text) {
			found = append(found, url)
		}
	}
	return found
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T comparable](t *testing.T, got, want T, what string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not after %v: %s", patience, what)
		}
	}
}
