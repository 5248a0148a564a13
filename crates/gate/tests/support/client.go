// A client in Go, whose TLS is that of kubectl, the kubelets and the controllers.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"os"
	"strings"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Arguments: address, server name, ALPN, CA, certificate and key, the last three may be empty.
func main() {
	args := os.Args[1:]
	config := &tls.Config{ServerName: args[1], RootCAs: x509.NewCertPool()}
	ca, err := os.ReadFile(args[3])
	check(err)
	config.RootCAs.AppendCertsFromPEM(ca)
	if args[2] != "" {
		config.NextProtos = strings.Split(args[2], ",")
	}
	if args[4] != "" {
		pair, err := tls.LoadX509KeyPair(args[4], args[5])
		check(err)
		config.Certificates = []tls.Certificate{pair}
	}
	conn, err := tls.Dial("tcp", args[0], config)
	check(err)
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: kubernetes\r\n\r\n")
	check(err)
	_, err = io.Copy(os.Stdout, conn)
	check(err)
}
