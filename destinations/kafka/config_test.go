package kafka_test

import (
	"crypto/tls"
	"reflect"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/destinations/kafka"
	"github.com/packfinderz/outbox/destinations/wire"
)

func TestParseURL(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]kafka.Config{
		"kafka://host":             {Addresses: []string{"host:9092"}},
		"kafka://h:1,[::1]:2/":     {Addresses: []string{"h:1", "[::1]:2"}},
		"kafka://u:p%40%2F:x@h":    {Addresses: []string{"h:9092"}, Username: "u", Password: "p@/:x"},
		"kafka://h?tls=true":       {Addresses: []string{"h:9092"}, TLS: &tls.Config{MinVersion: tls.VersionTLS12}},
		"kafka://h?batch-bytes=77": {Addresses: []string{"h:9092"}, BatchBytes: 77},
		"kafka://u:p@h?sasl=scram-sha-512&create=true&partitions=3&replication=2&compression=zstd&client-id=me&format=cloudevents&source=/s": {
			Addresses: []string{"h:9092"}, Username: "u", Password: "p", SASL: "scram-sha-512", Create: true, Partitions: 3, Replication: 2,
			Compression: "zstd", ClientID: "me", Format: wire.Format{CloudEvents: true, Source: "/s"},
		},
	} {
		if want.BatchBytes == 0 {
			want.BatchBytes = kafka.DefaultBatchBytes
		}
		if want.Compression == "" {
			want.Compression = "snappy"
		}
		if want.ClientID == "" {
			want.ClientID = "outbox"
		}
		got, err := kafka.ParseURL(raw)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v; want %+v", raw, got, err, want)
		}
	}
}

func TestParseURLRefuses(t *testing.T) {
	t.Parallel()
	for raw, words := range map[string]string{
		"http://u:s3cret@h":                   "kafka://",
		"kafka://u:1/s3cret@h":                "%XX",
		"kafka://":                            "a host must look like",
		"kafka://u:s3cret@":                   "a host must look like",
		"kafka://s3cret@h":                    "password",
		"kafka://u:s3cret@h:port":             "a host must look like",
		"kafka://u:s3cret@a:b:c":              "a host must look like",
		"kafka://u:s3cret%zz@h":               "%XX",
		"kafka://u:s3cret@h/topic":            "only options",
		"kafka://u:s3cret@h?creat=true":       `no option "creat"`,
		"kafka://u:s3cret@h?create=maybe":     "true or false",
		"kafka://u:s3cret@h?sasl=gssapi":      "scram-sha-256",
		"kafka://h?sasl=plain":                "needs a user",
		"kafka://h?partitions=3":              "create=true",
		"kafka://h?create=true&partitions=-1": "above zero",
		"kafka://h?batch-bytes=0":             "above zero",
		"kafka://h?batch-bytes=999999999":     "at most",
		"kafka://h?compression=rar":           "snappy",
		"kafka://u:s3cret@h?cert=a":           "go together",
		"kafka://u:s3cret@h?ca=/nowhere":      "no such file",
		"kafka://h?cert=/nowhere&key=/n":      "no such file",
		"kafka://h?source=/s":                 "format=cloudevents",
	} {
		_, err := kafka.ParseURL(raw)
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: got %v, want %q", raw, err, words)
		} else if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("the error shows a secret: %v", err)
		}
	}
}
