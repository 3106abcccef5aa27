package conformance

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// TestEnvtest is what a project made with kubebuilder does in its tests: a control plane of its own, from the binaries in
// KUBEBUILDER_ASSETS, with definitions from a folder.
func TestEnvtest(t *testing.T) {
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		t.Fatal("KUBEBUILDER_ASSETS does not name a folder of binaries")
	}
	environment := &envtest.Environment{CRDDirectoryPaths: []string{"crds"}, ErrorIfCRDPathMissing: true}
	begin := time.Now()
	config, err := environment.Start()
	must(t, err)
	t.Logf("started in %v", time.Since(begin))
	stopped := false
	defer func() {
		if !stopped {
			_ = environment.Stop()
		}
	}()

	t.Run("AManagerWorks", func(t *testing.T) { keepsWhatItOwns(placeAt(t, config), manager.Options{}) })

	t.Run("DefinitionsFromTheFolderAreServed", func(t *testing.T) {
		p := placeAt(t, config)
		direct, err := client.New(config, client.Options{Scheme: scheme()})
		must(t, err)
		loud := &Greeting{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "loud"}, Spec: GreetingSpec{Text: "hello", Volume: 12}}
		equal(t, apierrors.IsInvalid(direct.Create(p.context, loud)), true, "one that is too loud is refused")
	})

	t.Run("KubectlIsThere", func(t *testing.T) {
		p := placeAt(t, config)
		user, err := environment.AddUser(envtest.User{Name: "shell", Groups: []string{"system:masters"}}, nil)
		must(t, err)
		kubectl, err := user.Kubectl()
		must(t, err)
		out, errors, err := kubectl.Run("get", "namespace", p.namespace, "--output=name")
		text, _ := io.ReadAll(errors)
		if err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		text, _ = io.ReadAll(out)
		equal(t, strings.TrimSpace(string(text)), "namespace/"+p.namespace, "what kubectl says")
	})

	t.Run("AddedUsersAreWhoTheyAre", func(t *testing.T) {
		user, err := environment.AddUser(envtest.User{Name: "jane", Groups: []string{"writers"}}, nil)
		must(t, err)
		clients, err := kubernetes.NewForConfig(user.Config())
		must(t, err)
		who, err := clients.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		must(t, err)
		equal(t, who.Status.UserInfo.Username, "jane", "user")
		equal(t, strings.Join(who.Status.UserInfo.Groups, ","), "writers,system:authenticated", "groups")
	})

	t.Run("UsersMayDoWhatRolesSay", func(t *testing.T) {
		has(t, "authorization")
		p := placeAt(t, config)
		user, err := environment.AddUser(envtest.User{Name: "joe", Groups: []string{"readers"}}, nil)
		must(t, err)
		clients, err := kubernetes.NewForConfig(user.Config())
		must(t, err)
		_, err = clients.CoreV1().ConfigMaps(p.namespace).List(p.context, metav1.ListOptions{})
		equal(t, apierrors.IsForbidden(err), true, "without a role it is forbidden")
		role := &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Name: "reader"},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}}},
		}
		_, err = p.clients.RbacV1().Roles(p.namespace).Create(p.context, role, metav1.CreateOptions{})
		must(t, err)
		binding := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "readers"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "readers"}},
		}
		_, err = p.clients.RbacV1().RoleBindings(p.namespace).Create(p.context, binding, metav1.CreateOptions{})
		must(t, err)
		eventually(t, "with a role it works", func() bool {
			_, err = clients.CoreV1().ConfigMaps(p.namespace).List(p.context, metav1.ListOptions{})
			return err == nil
		})
		err = clients.CoreV1().ConfigMaps(p.namespace).Delete(p.context, "any", metav1.DeleteOptions{})
		equal(t, apierrors.IsForbidden(err), true, "but only what the role says")
	})

	t.Run("WhatLosesItsOwnerGoes", func(t *testing.T) {
		has(t, "controllers")
		p := placeAt(t, config)
		owner := p.create("owner", nil)
		owned := p.configMap("owned", nil)
		owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}}
		maps := p.clients.CoreV1().ConfigMaps(p.namespace)
		_, err := maps.Create(p.context, owned, metav1.CreateOptions{})
		must(t, err)
		must(t, maps.Delete(p.context, "owner", metav1.DeleteOptions{}))
		eventually(t, "what was owned is gone", func() bool {
			_, err := maps.Get(p.context, "owned", metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
	})

	t.Run("NamespacesCanBeDeleted", func(t *testing.T) {
		has(t, "controllers")
		p := placeAt(t, config)
		p.create("content", nil)
		must(t, p.clients.CoreV1().Namespaces().Delete(p.context, p.namespace, metav1.DeleteOptions{}))
		eventually(t, "the namespace is gone", func() bool {
			_, err := p.clients.CoreV1().Namespaces().Get(p.context, p.namespace, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
	})

	t.Run("ObjectsOutliveTheAPIServer", func(t *testing.T) {
		p := placeAt(t, config)
		p.create("survivor", map[string]string{"still": "there"})
		must(t, environment.ControlPlane.APIServer.Stop())
		must(t, environment.ControlPlane.APIServer.Start())
		user, err := environment.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, nil)
		must(t, err)
		p.clients, err = kubernetes.NewForConfig(user.Config())
		must(t, err)
		equal(t, p.get("survivor").Data["still"], "there", "data")
	})

	stopped = true
	certificates := environment.ControlPlane.APIServer.CertDir
	must(t, environment.Stop())
	if _, err := os.Stat(certificates); !os.IsNotExist(err) {
		t.Errorf("%s is left over", certificates)
	}

	t.Run("TheNextOneIsEmpty", func(t *testing.T) {
		environment := &envtest.Environment{}
		config, err := environment.Start()
		must(t, err)
		defer func() { must(t, environment.Stop()) }()
		clients, err := kubernetes.NewForConfig(config)
		must(t, err)
		list, err := clients.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
		must(t, err)
		for _, namespace := range list.Items {
			equal(t, strings.HasPrefix(namespace.Name, "go-"), false, namespace.Name+" is of the one before")
		}
		_, err = clients.CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
		must(t, err)
	})
}

// BenchmarkEnvtest measures how long a control plane takes to start and to stop.
func BenchmarkEnvtest(b *testing.B) {
	for b.Loop() {
		environment := &envtest.Environment{CRDDirectoryPaths: []string{"crds"}}
		if _, err := environment.Start(); err != nil {
			b.Fatal(err)
		}
		if err := environment.Stop(); err != nil {
			b.Fatal(err)
		}
	}
}
