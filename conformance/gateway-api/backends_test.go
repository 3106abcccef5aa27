package gatewayapi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Backends does for the Deployments of the suite what nodes would: a Pod for each replica, with an echo server on a loopback address in the place
// of its container, and EndpointSlices for the Services that select it.
type backends struct {
	testing *testing.T
	client  client.Client
	// By namespace and name of the Pod.
	pods map[types.NamespacedName]*pod
}

type pod struct {
	address string
	labels  map[string]string
	echo    *echo
}

// Addresses of Pods begin here. EndpointSlices may not have addresses of 127.0.0.0/8; these are meant for tests, and routed to the loopback interface.
const firstPod = "198.18.0."

// follow runs until the context ends.
func (b *backends) follow(ctx context.Context) {
	for ctx.Err() == nil {
		if err := b.round(ctx); err != nil && !errors.Is(err, context.Canceled) {
			b.testing.Logf("backends: %v", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
	for _, pod := range b.pods {
		pod.echo.stop()
	}
}

func (b *backends) round(ctx context.Context) error {
	var deployments appsv1.DeploymentList
	if err := b.client.List(ctx, &deployments); err != nil {
		return err
	}
	for _, deployment := range deployments.Items {
		for number := range *deployment.Spec.Replicas {
			name := types.NamespacedName{Namespace: deployment.Namespace, Name: fmt.Sprintf("%s-echo-%d", deployment.Name, number)}
			if b.pods[name] == nil {
				if err := b.start(ctx, name, deployment.Spec.Template); err != nil {
					return err
				}
			}
		}
	}
	var services corev1.ServiceList
	if err := b.client.List(ctx, &services); err != nil {
		return err
	}
	for _, service := range services.Items {
		if strings.HasPrefix(service.Namespace, "gateway-conformance") && len(service.Spec.Selector) > 0 {
			if err := b.slice(ctx, &service); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *backends) start(ctx context.Context, name types.NamespacedName, template corev1.PodTemplateSpec) error {
	address := fmt.Sprintf("%s%d", firstPod, len(b.pods)+1)
	object := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name, Labels: template.Labels},
		Spec:       template.Spec,
	}
	object.Spec.NodeName = "loopback"
	if err := b.client.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	object.Status.Phase = corev1.PodRunning
	object.Status.PodIP = address
	object.Status.PodIPs = []corev1.PodIP{{IP: address}}
	object.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if err := b.client.Status().Update(ctx, object); err != nil {
		return err
	}
	echo, err := startEcho(address, name.Namespace, name.Name)
	if err != nil {
		return err
	}
	b.pods[name] = &pod{address: address, labels: template.Labels, echo: echo}
	return nil
}

// slice writes the endpoints of a Service. All of them have the port of the container.
func (b *backends) slice(ctx context.Context, service *corev1.Service) error {
	selector := labels.SelectorFromSet(service.Spec.Selector)
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: service.Namespace,
			Name:      service.Name + "-echo",
			Labels:    map[string]string{discoveryv1.LabelServiceName: service.Name},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for _, port := range service.Spec.Ports {
		target := int32(port.TargetPort.IntValue())
		if target == 0 {
			target = port.Port
		}
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: &port.Name, Port: &target, Protocol: &port.Protocol, AppProtocol: port.AppProtocol})
	}
	ready := true
	for name, pod := range b.pods {
		if name.Namespace == service.Namespace && selector.Matches(labels.Set(pod.labels)) {
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
				Addresses:  []string{pod.address},
				Conditions: discoveryv1.EndpointConditions{Ready: &ready},
				TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: name.Namespace, Name: name.Name},
			})
		}
	}
	if len(slice.Endpoints) == 0 {
		return nil
	}
	var known discoveryv1.EndpointSlice
	err := b.client.Get(ctx, client.ObjectKeyFromObject(slice), &known)
	switch {
	case apierrors.IsNotFound(err):
		return b.client.Create(ctx, slice)
	case err != nil:
		return err
	case len(known.Endpoints) == len(slice.Endpoints) && maps.Equal(known.Labels, slice.Labels):
		return nil
	}
	known.Endpoints, known.Ports = slice.Endpoints, slice.Ports
	return b.client.Update(ctx, &known)
}

// freeAddress says whether an address can be listened on here.
func freeAddress(address string) error {
	listener, err := net.Listen("tcp", address)
	if err == nil {
		listener.Close()
	}
	return err
}
