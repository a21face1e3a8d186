package devenv

import (
	"bytes"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
)

func connected(t *testing.T, address string, options ...nats.Option) jetstream.JetStream {
	t.Helper()
	conn, err := nats.Connect(address, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func streams(t *testing.T, js jetstream.JetStream) string {
	t.Helper()
	var found []string
	for name := range js.StreamNames(t.Context()).Name() {
		found = append(found, name)
	}
	return strings.Join(found, " ")
}

func TestAnEmbeddedNATS(t *testing.T) {
	var log bytes.Buffer
	folder := filepath.Join(t.TempDir(), "nats")
	server := NewNATS(NATSConfig{Folder: folder, Log: zerolog.New(zerolog.SyncWriter(&log))})
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Stop() }()
	address := server.URL()

	t.Run("keeps messages and takes 2 MiB", func(t *testing.T) {
		js := connected(t, address)
		if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s.>"}}); err != nil {
			t.Fatal(err)
		}
		if got := js.Conn().MaxPayload(); got != 2<<20 {
			t.Errorf("largest message: %d, want 2 MiB", got)
		}
		if _, err := js.Publish(t.Context(), "s.1", make([]byte, 2<<20)); err != nil {
			t.Error(err)
		}
	})
	t.Run("is reached within the process", func(t *testing.T) {
		if got := streams(t, connected(t, "", server.InProcess()...)); got != "S" {
			t.Errorf("streams: %q, want S", got)
		}
	})
	t.Run("is not for whoever has no password", func(t *testing.T) {
		open, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		open.User = nil
		for _, options := range [][]nats.Option{nil, {nats.UserInfo("treeline", "guess")}, {nats.Token("guess")}} {
			if _, err := nats.Connect(open.String(), options...); !errors.Is(err, nats.ErrAuthorization) {
				t.Errorf("%v, want it refused", err)
			}
		}
		info, err := os.Stat(filepath.Join(folder, "password"))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("the password's mode: %04o, want 0600", info.Mode().Perm())
		}
	})
	t.Run("is one for a folder", func(t *testing.T) {
		var inUse *FolderInUseError
		if err := NewNATS(NATSConfig{Folder: folder}).Start(); !errors.As(err, &inUse) {
			t.Errorf("%v, want the folder in use", err)
		}
	})
	t.Run("restarts on the same port with its streams", func(t *testing.T) {
		if err := server.Restart(); err != nil {
			t.Fatal(err)
		}
		if server.URL() != address {
			t.Error("another address")
		}
		if got := streams(t, connected(t, address)); got != "S" {
			t.Errorf("streams: %q, want S", got)
		}
	})
	t.Run("loses everything when wiped", func(t *testing.T) {
		if err := server.Wipe(); err != nil {
			t.Fatal(err)
		}
		if server.URL() != address {
			t.Error("another address")
		}
		if got := streams(t, connected(t, address)); got != "" {
			t.Errorf("streams: %q, want none", got)
		}
	})
	t.Run("refuses who comes within the process once stopped", func(t *testing.T) {
		if err := errors.Join(server.Stop(), server.Stop()); err != nil {
			t.Fatal(err)
		}
		if _, err := nats.Connect("", server.InProcess()...); err == nil {
			t.Error("no error")
		}
	})
	if log.Len() == 0 || strings.Contains(log.String(), server.password) {
		t.Errorf("the log is empty or has the password (%d bytes)", log.Len())
	}
}

func TestANATSThatWasNeverStarted(t *testing.T) {
	server := NewNATS(NATSConfig{Folder: t.TempDir()})
	if err := server.Stop(); err != nil {
		t.Error(err)
	}
	if got := server.URL(); got != "" {
		t.Errorf("address: %s", got)
	}
}
