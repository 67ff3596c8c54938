package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pulumi/pulumi/pkg/v3/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/env"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
)

// fakeProcess notes what it is told.
type fakeProcess struct {
	plugin.MockProvider
	configured, cancelled, ended atomic.Int32
	dead                         atomic.Bool
	create                       func() error
}

func (f *fakeProcess) end() { f.ended.Add(1) }

type fakes struct {
	mutex sync.Mutex
	all   []*fakeProcess
}

func (f *fakes) pool() *plugins {
	return newPlugins(func(workspace.PluginDescriptor, env.Env, *secretWords) (process, error) {
		made := &fakeProcess{create: func() error { return nil }}
		made.GetPluginInfoF = func(context.Context) (plugin.PluginInfo, error) {
			if made.dead.Load() {
				return plugin.PluginInfo{}, errors.New("connection refused")
			}
			return plugin.PluginInfo{}, nil
		}
		made.ConfigureF = func(context.Context, plugin.ConfigureRequest) (plugin.ConfigureResponse, error) {
			made.configured.Add(1)
			return plugin.ConfigureResponse{}, nil
		}
		made.SignalCancellationF = func(context.Context) error { made.cancelled.Add(1); return nil }
		made.CreateF = func(context.Context, plugin.CreateRequest) (plugin.CreateResponse, error) {
			return plugin.CreateResponse{}, made.create()
		}
		f.mutex.Lock()
		f.all = append(f.all, made)
		f.mutex.Unlock()
		return made, nil
	})
}

func configured(t *testing.T, pool *plugins, token string, terminated <-chan struct{}) *lease {
	t.Helper()
	leased, err := pool.lease(workspace.PluginDescriptor{Name: "vault"}, env.NewEnv(env.MapStore{}), terminated)
	if err != nil {
		t.Fatal(err)
	}
	inputs := resource.PropertyMap{"token": resource.MakeSecret(resource.NewStringProperty(token))}
	if _, err := leased.Configure(context.Background(), plugin.ConfigureRequest{Inputs: inputs}); err != nil {
		t.Fatal(err)
	}
	return leased
}

func (f *fakes) want(t *testing.T, count int) {
	t.Helper()
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if len(f.all) != count {
		t.Fatalf("%d processes were started, not %d", len(f.all), count)
	}
}

func TestSharesAProcessByConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := &fakes{}
		pool := made.pool()
		var at sync.WaitGroup
		for range 4 {
			at.Go(func() { _ = configured(t, pool, "token-a", nil).Close() })
		}
		at.Wait()
		made.want(t, 1)
		_ = configured(t, pool, "token-b", nil).Close()
		_ = configured(t, pool, "token-a", nil).Close()
		made.want(t, 2)
		for _, process := range made.all {
			if got := process.configured.Load(); got != 1 {
				t.Errorf("configured %d times", got)
			}
		}
	})
}

func TestReplacesAProcessThatIsDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := &fakes{}
		pool := made.pool()
		_ = configured(t, pool, "token", nil).Close()
		made.all[0].dead.Store(true)
		_ = configured(t, pool, "token", nil).Close()
		made.want(t, 2)
		synctest.Wait()
		if made.all[0].ended.Load() != 1 {
			t.Error("the dead one was not ended")
		}
	})
}

func TestEndsProcessesThatAreIdleOrTooMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := &fakes{}
		pool := made.pool()
		pool.kept = 2
		for _, token := range []string{"token-a", "token-b", "token-c"} {
			_ = configured(t, pool, token, nil).Close()
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if made.all[0].ended.Load() != 1 || made.all[1].ended.Load() != 0 {
			t.Error("the oldest of three was to end, no other")
		}
		used := configured(t, pool, "token-c", nil)
		time.Sleep(pluginIdle)
		synctest.Wait()
		if made.all[1].ended.Load() != 1 || made.all[2].ended.Load() != 0 {
			t.Error("the idle one was to end, not the one in use")
		}
		_ = used.Close()
		time.Sleep(pluginIdle)
		synctest.Wait()
		if made.all[2].ended.Load() != 1 || len(pool.all) != 0 {
			t.Error("the last one was to end")
		}
	})
}

func TestCancelsNoProcessThatOthersShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := &fakes{}
		pool := made.pool()
		first, second := configured(t, pool, "token", nil), configured(t, pool, "token", nil)
		_ = first.SignalCancellation(context.Background())
		_ = first.Close()
		if made.all[0].cancelled.Load() != 0 || made.all[0].ended.Load() != 0 {
			t.Error("the other update's process was cancelled")
		}
		third := configured(t, pool, "token", nil)
		made.want(t, 2)
		_ = second.Close()
		synctest.Wait()
		if made.all[0].ended.Load() != 1 {
			t.Error("the drained process was to end with its last update")
		}
		_ = third.SignalCancellation(context.Background())
		if made.all[1].cancelled.Load() != 1 {
			t.Error("one update's own process was to be cancelled")
		}
		_ = third.Close()
		synctest.Wait()
	})
}

func TestDoesNotWaitForAPluginThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := &fakes{}
		pool := made.pool()
		terminated, hang := make(chan struct{}), make(chan struct{})
		leased := configured(t, pool, "token", terminated)
		made.all[0].create = func() error { <-hang; return nil }
		time.AfterFunc(time.Second, func() { close(terminated) })
		if _, err := leased.Create(context.Background(), plugin.CreateRequest{}); !errors.Is(err, errTerminated) {
			t.Errorf("got %v", err)
		}
		_ = leased.Close()
		synctest.Wait()
		if made.all[0].ended.Load() != 1 {
			t.Error("the process was to end")
		}
		close(hang)
	})
}

func TestDoesNotWaitForAPluginThatHangsWhenItIsConfigured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := &fakes{}
		pool := made.pool()
		terminated, hang := make(chan struct{}), make(chan struct{})
		leased, err := pool.lease(workspace.PluginDescriptor{Name: "vault"}, env.NewEnv(env.MapStore{}), terminated)
		if err != nil {
			t.Fatal(err)
		}
		made.all[0].ConfigureF = func(context.Context, plugin.ConfigureRequest) (plugin.ConfigureResponse, error) {
			<-hang
			return plugin.ConfigureResponse{}, nil
		}
		time.AfterFunc(time.Second, func() { close(terminated) })
		if _, err := leased.Configure(context.Background(), plugin.ConfigureRequest{}); !errors.Is(err, errTerminated) {
			t.Errorf("got %v", err)
		}
		_ = leased.Close()
		other := configured(t, pool, "token", nil) // the program's turn is free, and the process is another one
		made.want(t, 2)
		_ = other.Close()
		close(hang)
	})
}

func TestHidesEachLineOfASecretAndItsFormInJSON(t *testing.T) {
	words := &secretWords{}
	key := "-----BEGIN KEY-----\nMIIE\"vgIB<\n-----END KEY-----\n"
	properties := resource.PropertyMap{"key": resource.MakeSecret(resource.NewStringProperty(key))}
	words.hold(properties)
	for _, said := range []string{"MIIE\"vgIB<", `-----BEGIN KEY-----\nMIIE\"vgIB<\n-----END KEY-----\n`} {
		if got := words.hide("it says " + said); got != "it says "+hidden {
			t.Errorf("got %q", got)
		}
	}
	words.drop(properties)
	if got := words.hide("MIIE"); len(words.held) != 0 || got != "MIIE" {
		t.Errorf("still held: %v", words.held)
	}
}

func TestHidesSecretsThatAPluginQuotes(t *testing.T) {
	made := &fakes{}
	pool := made.pool()
	leased := configured(t, pool, "token-of-vault", nil)
	made.all[0].create = func() error { return errors.New("token-of-vault cannot write canary-value of anna") }
	request := plugin.CreateRequest{Properties: resource.PropertyMap{
		"value": resource.MakeSecret(resource.NewStringProperty("canary-value")), "user": resource.NewStringProperty("anna"),
	}}
	_, err := leased.Create(context.Background(), request)
	if err == nil || err.Error() != "[secret] cannot write [secret] of anna" {
		t.Errorf("got %v", err)
	}
	if said := leased.warm.secrets.hide("canary-value token-of-vault"); strings.Contains(said, "token-of-vault") {
		t.Errorf("got %q", said)
	}
	failed := leased.warm.secrets.hideIn(&plugin.InitError{Reasons: []string{"token-of-vault"}})
	if reasons := failed.(*plugin.InitError).Reasons; reasons[0] != hidden {
		t.Errorf("got %v", reasons)
	}
	_ = leased.Close()
}
