// A proxy between a program and an API server that writes down each request with its answer.
//
//	recorder KUBECONFIG NEW_KUBECONFIG RECORD
//
// KUBECONFIG is JSON (`kubectl config view --raw --flatten -o json`) with a client certificate. NEW_KUBECONFIG leads to the
// proxy, which asks in the name of that certificate. RECORD gets a line of JSON for each request: of watches when they begin, with the
// body if it is an error. Ends with its standard input.
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"sync"
)

// How much of the body of an error is written down.
const mostOfError = 4096

type kubeconfig struct {
	Clusters []struct {
		Cluster struct {
			Server string `json:"server"`
			CA     []byte `json:"certificate-authority-data"`
		} `json:"cluster"`
	} `json:"clusters"`
	Users []struct {
		User struct {
			Certificate []byte `json:"client-certificate-data"`
			Key         []byte `json:"client-key-data"`
		} `json:"user"`
	} `json:"users"`
}

// One request and its answer.
type exchange struct {
	Method   string   `json:"method"`
	Path     string   `json:"path"`
	Query    string   `json:"query,omitempty"`
	Agent    string   `json:"agent,omitempty"`
	Accept   string   `json:"accept,omitempty"`
	Upgrade  string   `json:"upgrade,omitempty"`
	Code     int      `json:"code"`
	Type     string   `json:"type,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	Error    string   `json:"error,omitempty"`
}

type record struct {
	sync.Mutex
	lines *json.Encoder
}

func (r *record) write(one exchange) {
	r.Lock()
	defer r.Unlock()
	if err := r.lines.Encode(one); err != nil {
		log.Fatal(err)
	}
}

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: recorder KUBECONFIG NEW_KUBECONFIG RECORD")
	}
	text, err := os.ReadFile(os.Args[1])
	fail(err)
	var config kubeconfig
	fail(json.Unmarshal(text, &config))
	target, err := url.Parse(config.Clusters[0].Cluster.Server)
	fail(err)
	file, err := os.OpenFile(os.Args[3], os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	fail(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(config.Clusters[0].Cluster.CA)
	certificate, err := tls.X509KeyPair(config.Users[0].User.Certificate, config.Users[0].User.Key)
	fail(err)
	tlsConfig := &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{certificate}}

	server := httptest.NewUnstartedServer(proxy(target, tlsConfig, &record{lines: json.NewEncoder(file)}))
	server.EnableHTTP2 = true
	server.StartTLS()
	fail(os.WriteFile(os.Args[2], pointingTo(server), 0o600))
	fmt.Println(server.URL)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// Upgrades need HTTP/1.1, everything else goes by HTTP/2 as it does without a proxy.
func proxy(target *url.URL, config *tls.Config, record *record) http.Handler {
	streams := &http.Transport{TLSClientConfig: config.Clone(), ForceAttemptHTTP2: true, DisableCompression: true}
	upgrades := &http.Transport{TLSClientConfig: config.Clone(), DisableCompression: true, TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}}
	through := func(transport http.RoundTripper) *httputil.ReverseProxy {
		return &httputil.ReverseProxy{
			Rewrite: func(request *httputil.ProxyRequest) {
				request.SetURL(target)
				request.Out.Header.Del("Authorization")
			},
			Transport:     transport,
			FlushInterval: -1,
			ErrorLog:      log.New(io.Discard, "", 0), // clients that go away
			ModifyResponse: func(response *http.Response) error {
				return record.note(response)
			},
		}
	}
	plain, upgraded := through(streams), through(upgrades)
	return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		if request.Header.Get("Upgrade") != "" {
			upgraded.ServeHTTP(writer, request)
		} else {
			plain.ServeHTTP(writer, request)
		}
	})
}

func (r *record) note(response *http.Response) error {
	request := response.Request
	one := exchange{
		Method:   request.Method,
		Path:     request.URL.Path,
		Query:    request.URL.RawQuery,
		Agent:    request.UserAgent(),
		Accept:   request.Header.Get("Accept"),
		Upgrade:  request.Header.Get("Upgrade"),
		Code:     response.StatusCode,
		Type:     response.Header.Get("Content-Type"),
		Warnings: response.Header.Values("Warning"),
	}
	if response.StatusCode >= 400 {
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return err
		}
		response.Body = io.NopCloser(bytes.NewReader(body))
		one.Error = string(body[:min(len(body), mostOfError)])
	}
	r.write(one)
	return nil
}

// A kubeconfig that trusts the proxy. Its token is for programs that would ask a person for credentials otherwise; the proxy drops it.
func pointingTo(server *httptest.Server) []byte {
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "recorder",
		"clusters": []any{map[string]any{"name": "recorder", "cluster": map[string]any{"server": server.URL, "certificate-authority-data": authority}}},
		"users":    []any{map[string]any{"name": "recorder", "user": map[string]any{"token": "none"}}},
		"contexts": []any{map[string]any{"name": "recorder", "context": map[string]any{"cluster": "recorder", "user": "recorder"}}},
	})
	fail(err)
	return text
}

func fail(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
