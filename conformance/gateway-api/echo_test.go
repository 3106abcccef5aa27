package gatewayapi

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/websocket"
)

// An echo server tells what it was asked, in the form that the suite reads. It stands for a container of the suite's manifests, and listens
// on a loopback address of its own: on the ports that the containers have, so that Services lead to it unchanged.
type echo struct {
	namespace, pod string
	servers        []*http.Server
}

// The ports of the containers: HTTP/1.1, and HTTP/2 without TLS.
const httpPort, h2cPort = 3000, 3001

func startEcho(address, namespace, pod string) (*echo, error) {
	echo := &echo{namespace: namespace, pod: pod}
	mux := http.NewServeMux()
	mux.HandleFunc("/status/", status)
	mux.HandleFunc("/", echo.answer)
	mux.Handle("/ws", websocket.Handler(func(socket *websocket.Conn) {
		var message []byte
		for websocket.Message.Receive(socket, &message) == nil {
			if websocket.Message.Send(socket, message) != nil {
				return
			}
		}
	}))
	both := new(http.Protocols)
	both.SetHTTP1(true)
	both.SetUnencryptedHTTP2(true)
	onlyHTTP2 := http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		if request.ProtoMajor != 2 {
			http.Error(writer, "this port is for HTTP/2", http.StatusBadRequest)
			return
		}
		echo.answer(writer, request)
	})
	for _, server := range []*http.Server{
		{Addr: net.JoinHostPort(address, strconv.Itoa(httpPort)), Handler: mux},
		{Addr: net.JoinHostPort(address, strconv.Itoa(h2cPort)), Handler: onlyHTTP2, Protocols: both},
	} {
		listener, err := net.Listen("tcp", server.Addr)
		if err != nil {
			echo.stop()
			return nil, err
		}
		server.ReadHeaderTimeout = 10 * time.Second
		echo.servers = append(echo.servers, server)
		go server.Serve(listener)
	}
	return echo, nil
}

func (e *echo) stop() {
	for _, server := range e.servers {
		server.Close()
	}
}

func status(writer http.ResponseWriter, request *http.Request) {
	code, err := strconv.Atoi(strings.TrimPrefix(request.URL.Path, "/status/"))
	if err != nil || code < 200 || code > 599 {
		code = http.StatusBadRequest
	}
	writer.WriteHeader(code)
}

func (e *echo) answer(writer http.ResponseWriter, request *http.Request) {
	if delay := request.URL.Query().Get("delay"); delay != "" {
		duration, err := time.ParseDuration(delay)
		if err != nil {
			http.Error(writer, fmt.Sprintf("delay: %v", err), http.StatusBadRequest)
			return
		}
		select {
		case <-time.After(duration):
		case <-request.Context().Done():
		}
	}
	for _, list := range request.Header.Values("X-Echo-Set-Header") {
		for pair := range strings.SplitSeq(list, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(pair), ":")
			writer.Header().Add(name, strings.TrimSpace(value))
		}
	}
	writer.Header().Set("Content-Type", "application/json")
	json.NewEncoder(writer).Encode(map[string]any{
		"path":      request.RequestURI,
		"host":      request.Host,
		"method":    request.Method,
		"proto":     request.Proto,
		"headers":   request.Header,
		"httpPort":  strconv.Itoa(httpPort),
		"namespace": e.namespace,
		"pod":       e.pod,
	})
}
