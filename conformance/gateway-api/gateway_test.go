// Package gatewayapi runs the conformance suite of Gateway API against the gateway.
//
// WATCHKEEPER names the program. It is run twice: as an API server, with the definitions of the suite's own version of Gateway API, and as a gateway
// that is configured by it. The gateway gives each Gateway a loopback address of its own, and echo servers on other addresses of the loopback interface stand
// for the suite's containers, so that neither nodes nor images are needed. scripts/conformance-gateway-api makes a network namespace in which ports 80 and 443
// are free and 198.18.0.0/16 is routed to the loopback interface.
//
// SHORT_NAME runs one test, FEATURES adds those of features that the gateway does not say it has. README.md says which tests are not run, and why.
package gatewayapi

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	v1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/apis/v1beta1"
	"sigs.k8s.io/gateway-api/conformance"
	"sigs.k8s.io/gateway-api/conformance/tests"
	"sigs.k8s.io/gateway-api/conformance/utils/config"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
	"sigs.k8s.io/gateway-api/pkg/features"
	"sigs.k8s.io/yaml"
)

const (
	class      = "watchkeeper"
	controller = "watchkeeper.dev/gateway"
	// Each Gateway gets one of these.
	addresses = "127.8.0.0/16"
)

func TestConformance(t *testing.T) {
	log.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	program := os.Getenv("WATCHKEEPER")
	if program == "" {
		t.Skip("WATCHKEEPER does not name the program")
	}
	for _, address := range []string{"127.8.255.254:80", "198.18.0.1:3000"} {
		require.NoError(t, freeAddress(address), "use scripts/conformance-gateway-api")
	}
	folder := t.TempDir()
	kubeconfig := filepath.Join(folder, "kubeconfig")
	start(t, program, "serve", "--in-memory", "--listen", "127.0.0.1:0", "--kubeconfig", kubeconfig)
	waitFor(t, kubeconfig)
	rest, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	require.NoError(t, err)
	rest.QPS, rest.Burst = 1000, 2000
	api, err := client.New(rest, client.Options{})
	require.NoError(t, err)
	for _, install := range []error{v1.Install(api.Scheme()), v1beta1.Install(api.Scheme()), apiextensionsv1.AddToScheme(api.Scheme())} {
		require.NoError(t, install)
	}
	installDefinitions(t, api)
	require.NoError(t, api.Create(t.Context(), &v1.GatewayClass{
		ObjectMeta: metav1.ObjectMeta{Name: class},
		Spec:       v1.GatewayClassSpec{ControllerName: controller},
	}))
	start(t, program, "gateway", "--from", "kubernetes", "--kubeconfig", kubeconfig, "--admin", "off", "--gateway-addresses", addresses)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	echoes := &backends{testing: t, client: api, pods: map[types.NamespacedName]*pod{}}
	go func() {
		defer close(ended)
		echoes.follow(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	clients, err := clientset.NewForConfig(rest)
	require.NoError(t, err)
	timeouts := config.DefaultTimeoutConfig()
	timeouts.NamespacesMustBeReady = time.Minute
	timeouts.GatewayMustHaveAddress, timeouts.GatewayMustHaveCondition = 20*time.Second, 20*time.Second
	timeouts.MaxTimeToConsistency = 15 * time.Second
	options := suite.ConformanceOptions{
		ConfigurableOptions: suite.ConfigurableOptions{
			GatewayClassName:     class,
			CleanupBaseResources: false,
			CleanupTestResources: true,
			TimeoutConfig:        timeouts,
			RunTest:              os.Getenv("SHORT_NAME"),
			ConformanceProfiles:  []suite.ConformanceProfileName{suite.GatewayHTTPConformanceProfileName},
			SupportedFeatures:    supported(t, api),
			// The echo servers share two cores with the gateway.
			DisableParallelTests: true,
		},
		Client:     api,
		Clientset:  clients,
		RestConfig: rest,
		ManifestFS: []fs.FS{&conformance.Manifests},
	}
	run, err := suite.NewConformanceTestSuite(options)
	require.NoError(t, err)
	run.Setup(t, tests.ConformanceTests)
	require.NoError(t, run.Run(t, tests.ConformanceTests))
}

// supported waits until the gateway says in the status of its class what it can do.
func supported(t *testing.T, api client.Client) []features.FeatureName {
	t.Helper()
	var names []features.FeatureName
	require.Eventually(t, func() bool {
		var known v1.GatewayClass
		if api.Get(t.Context(), client.ObjectKey{Name: class}, &known) != nil {
			return false
		}
		for _, feature := range known.Status.SupportedFeatures {
			names = append(names, features.FeatureName(feature.Name))
		}
		return len(names) > 0
	}, time.Minute, 100*time.Millisecond, "the gateway does not accept its class")
	for name := range strings.FieldsSeq(os.Getenv("FEATURES")) {
		names = append(names, features.FeatureName(name))
	}
	return names
}

// installDefinitions applies the definitions of the version of Gateway API that the suite is of, from its module.
func installDefinitions(t *testing.T, api client.Client) {
	t.Helper()
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(module)), "config", "crd", "standard", "gateway.networking.k8s.io_*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, document := range bytes.Split(text, []byte("\n---\n")) {
			var definition apiextensionsv1.CustomResourceDefinition
			require.NoError(t, yaml.Unmarshal(document, &definition), file)
			if definition.Kind == "CustomResourceDefinition" {
				require.NoError(t, api.Create(t.Context(), &definition), file)
			}
		}
	}
}

// start runs a program until the test ends.
func start(t *testing.T, program string, arguments ...string) {
	t.Helper()
	command := exec.Command(program, arguments...)
	command.Stderr = os.Stderr
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		command.Process.Signal(os.Interrupt)
		done := make(chan error, 1)
		go func() { done <- command.Wait() }()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			command.Process.Kill()
			<-done
		}
	})
}

func waitFor(t *testing.T, file string) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := os.Stat(file)
		return err == nil
	}, 30*time.Second, 20*time.Millisecond, "%s was not written", file)
}
