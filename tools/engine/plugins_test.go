package main

import (
	"context"
	"errors"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pulumi/pulumi/pkg/v3/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// fakeProcess notes what it is told.
type fakeProcess struct {
	configured, cancelled, ended, killed atomic.Int32
	memory                               atomic.Int64
	dead                                 atomic.Bool
	// What it does, by the name of the method.
	does map[string]func(context.Context) error
}

func (f *fakeProcess) call(ctx context.Context, method string, _, reply proto.Message) error {
	name := path.Base(method)
	if name == "Configure" {
		f.configured.Add(1)
		reply.(*pulumirpc.ConfigureResponse).AcceptSecrets = true
	}
	if name == "Cancel" {
		f.cancelled.Add(1)
	}
	if name == "GetPluginInfo" && f.dead.Load() {
		return errors.New("connection refused")
	}
	if does := f.does[name]; does != nil {
		return does(ctx)
	}
	return nil
}

func (f *fakeProcess) pid() int        { return 0 }
func (f *fakeProcess) resident() int64 { return f.memory.Load() }
func (f *fakeProcess) end()            { f.ended.Add(1) }
func (f *fakeProcess) kill()           { f.killed.Add(1) }

// hang is a call that is not answered.
func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

type fakes struct {
	mutex sync.Mutex
	all   []*fakeProcess
}

func (f *fakes) pool() *plugins {
	return newPlugins(func(pluginProgram, *secretWords) (startedProcess, error) {
		made := &fakeProcess{does: map[string]func(context.Context) error{}}
		f.mutex.Lock()
		f.all = append(f.all, made)
		f.mutex.Unlock()
		return made, nil
	})
}

func usedFrom(t *testing.T, pool *plugins) *pluginUse {
	t.Helper()
	use, err := pool.use(pluginProgram{Name: "vault"})
	if err != nil {
		t.Fatal(err)
	}
	return use
}

// secretStruct has one property, which is a secret.
func secretStruct(t *testing.T, name, value string) *structpb.Struct {
	t.Helper()
	made, err := plugin.MarshalProperties(
		resource.PropertyMap{
			resource.PropertyKey(name): resource.MakeSecret(resource.NewStringProperty(value)),
			"user":                     resource.NewStringProperty("anna"),
		}, plugin.MarshalOptions{KeepSecrets: true},
	)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func configure(ctx context.Context, t *testing.T, use *pluginUse, token string) (*pulumirpc.ConfigureResponse, error) {
	t.Helper()
	answer := &pulumirpc.ConfigureResponse{}
	request := &pulumirpc.ConfigureRequest{Args: secretStruct(t, "token", token)}
	return answer, use.call(ctx, pulumirpc.ResourceProvider_Configure_FullMethodName, request, answer)
}

func create(ctx context.Context, use *pluginUse, properties *structpb.Struct) error {
	request := &pulumirpc.CreateRequest{Properties: properties}
	return use.call(ctx, pulumirpc.ResourceProvider_Create_FullMethodName, request, &pulumirpc.CreateResponse{})
}

func cancelled(use *pluginUse) {
	_ = use.call(
		context.Background(), pulumirpc.ResourceProvider_Cancel_FullMethodName, &emptypb.Empty{}, &emptypb.Empty{},
	)
}

func configured(t *testing.T, pool *plugins, token string) *pluginUse {
	t.Helper()
	use := usedFrom(t, pool)
	answer, err := configure(context.Background(), t, use, token)
	if err != nil {
		t.Fatal(err)
	}
	if !answer.GetAcceptSecrets() {
		t.Error("what the plugin answered to its configuration is lost")
	}
	return use
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
			at.Go(func() { configured(t, pool, "token-a").close() })
		}
		at.Wait()
		made.want(t, 1)
		configured(t, pool, "token-b").close()
		configured(t, pool, "token-a").close()
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
		configured(t, pool, "token").close()
		made.all[0].dead.Store(true)
		configured(t, pool, "token").close()
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
			configured(t, pool, token).close()
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if made.all[0].ended.Load() != 1 || made.all[1].ended.Load() != 0 {
			t.Error("the oldest of three was to end, no other")
		}
		used := configured(t, pool, "token-c")
		time.Sleep(pluginIdle)
		synctest.Wait()
		if made.all[1].ended.Load() != 1 || made.all[2].ended.Load() != 0 {
			t.Error("the idle one was to end, not the one in use")
		}
		used.close()
		time.Sleep(pluginIdle)
		synctest.Wait()
		if made.all[2].ended.Load() != 1 || len(pool.all) != 0 {
			t.Error("the last one was to end")
		}
	})
}

func TestReplacesAProcessThatPrintsMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := &fakes{}
		pool := made.pool()
		use := configured(t, pool, "token")
		pool.countPrinted(use.current().secrets, pluginPrints)
		configured(t, pool, "token").close()
		made.want(t, 1)
		pool.countPrinted(use.current().secrets, 1)
		configured(t, pool, "token").close()
		made.want(t, 2)
		use.close()
		synctest.Wait()
		if made.all[0].ended.Load() != 1 {
			t.Error("it was to end with its last update")
		}
		time.Sleep(pluginIdle)
		synctest.Wait()
	})
}

func TestCancelsNoProcessThatOthersShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := &fakes{}
		pool := made.pool()
		first, second := configured(t, pool, "token"), configured(t, pool, "token")
		cancelled(first)
		first.close()
		if made.all[0].cancelled.Load() != 0 || made.all[0].ended.Load() != 0 {
			t.Error("the other update's process was cancelled")
		}
		third := configured(t, pool, "token")
		made.want(t, 2)
		second.close()
		synctest.Wait()
		if made.all[0].ended.Load() != 1 {
			t.Error("the drained process was to end with its last update")
		}
		cancelled(third)
		if made.all[1].cancelled.Load() != 1 {
			t.Error("one update's own process was to be cancelled")
		}
		third.close()
		synctest.Wait()
	})
}

func TestDoesNotWaitForAPluginThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := &fakes{}
		pool := made.pool()
		ctx, terminate := context.WithTimeout(context.Background(), time.Second)
		defer terminate()
		use := configured(t, pool, "token")
		made.all[0].does["Create"] = hang
		if err := create(ctx, use, nil); status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("got %v", err)
		}
		use.close()
		synctest.Wait()
		if made.all[0].ended.Load() != 1 {
			t.Error("the process was to end")
		}
	})
}

func TestDoesNotWaitForAPluginThatHangsWhenItIsConfigured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := &fakes{}
		pool := made.pool()
		ctx, terminate := context.WithCancel(context.Background())
		use := usedFrom(t, pool)
		made.all[0].does["Configure"] = hang
		waiting := sync.WaitGroup{}
		waiting.Go(func() {
			if _, err := configure(ctx, t, use, "token"); err == nil {
				t.Error("it was to fail")
			}
			use.close()
		})
		synctest.Wait()
		configured(t, pool, "another token").close() // does not wait
		made.want(t, 2)
		terminate()
		waiting.Wait()
		configured(t, pool, "token").close() // of another process
		made.want(t, 3)
		if named := len(pool.turns.named); named != 0 {
			t.Errorf("%d turns are kept", named)
		}
		time.Sleep(pluginIdle)
		synctest.Wait()
	})
}

func TestAUseThatEndsWhileItWaitsKeepsNoProcess(t *testing.T) {
	made := &fakes{}
	pool := made.pool()
	first := configured(t, pool, "token-a") // all ask its process first
	second, third := usedFrom(t, pool), usedFrom(t, pool)
	accept := make(chan struct{})
	start := pool.start
	pool.start = func(of pluginProgram, secrets *secretWords) (startedProcess, error) {
		process, err := start(of, secrets)
		process.(*fakeProcess).does["Configure"] = func(context.Context) error { <-accept; return nil }
		return process, err
	}
	var configuring sync.WaitGroup
	for waiting, use := range []*pluginUse{second, third} {
		configuring.Go(func() { _, _ = configure(context.Background(), t, use, "token-b") })
		for wanted := 0; wanted <= waiting; time.Sleep(time.Millisecond) {
			pool.turns.mutex.Lock()
			for _, turn := range pool.turns.named {
				wanted = turn.wanted
			}
			pool.turns.mutex.Unlock()
		}
	}
	third.close() // its engine has ended
	close(accept)
	configuring.Wait()
	for name, use := range map[string]*pluginUse{"first": first, "second": second} {
		if users := use.current().users; users != 1 {
			t.Errorf("%d updates use the process of the %s", users, name)
		}
	}
	made.want(t, 2)
}

func TestKeepsThePluginsMemoryWithinItsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := &fakes{}
		pool := made.pool()
		pool.memory = 100
		configured(t, pool, "token-a").close()
		time.Sleep(time.Second)
		configured(t, pool, "token-b").close()
		first, second := configured(t, pool, "token-c"), configured(t, pool, "token-d")
		for i, memory := range []int64{30, 30, 30, 40} {
			made.all[i].memory.Store(memory)
		}
		pool.bound()
		synctest.Wait()
		if made.all[0].ended.Load() != 1 || made.all[1].ended.Load() != 0 {
			t.Error("the process that was idle the longest was to end, no other")
		}
		made.all[3].memory.Store(90)
		pool.bound()
		synctest.Wait()
		if made.all[1].ended.Load() != 1 || made.all[3].ended.Load() != 0 || made.all[3].killed.Load() != 0 {
			t.Error("no process that an update uses was to end")
		}
		configured(t, pool, "token-d").close()
		made.want(t, 5) // the largest gets no new updates
		second.close()
		synctest.Wait()
		if made.all[3].ended.Load() != 1 || made.all[2].ended.Load() != 0 {
			t.Error("the largest was to end with its last update")
		}
		made.all[2].memory.Store(151)
		made.all[2].does["Create"] = func(context.Context) error {
			pool.bound()
			return status.Error(codes.Unavailable, "error reading from server: EOF")
		}
		if err := create(context.Background(), first, nil); !strings.Contains(err.Error(), "the plugin vault was killed") {
			t.Errorf("got %v", err)
		}
		if made.all[2].killed.Load() != 1 {
			t.Error("a process that has far too much was to be killed")
		}
		first.close()
		time.Sleep(pluginIdle)
		synctest.Wait()
	})
}

func TestHidesEachLineOfASecretAndItsFormInJSON(t *testing.T) {
	words := newSecretWords()
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
	synctest.Test(t, func(t *testing.T) {
		made := &fakes{}
		pool := made.pool()
		use := configured(t, pool, "token-of-vault")
		quoting := func(context.Context) error {
			failed, _ := status.New(codes.Unknown, "token-of-vault cannot write canary-value of anna").WithDetails(
				&pulumirpc.ErrorResourceInitFailed{Reasons: []string{"token-of-vault"}},
			)
			return failed.Err()
		}
		made.all[0].does["Create"] = quoting
		err := create(context.Background(), use, secretStruct(t, "value", "canary-value"))
		if got := status.Convert(err).Message(); got != "[secret] cannot write [secret] of anna" {
			t.Errorf("got %v", got)
		}
		detail := status.Convert(err).Details()[0].(*pulumirpc.ErrorResourceInitFailed)
		if detail.Reasons[0] != hidden {
			t.Errorf("got %v", detail.Reasons)
		}
		time.Sleep(secretsHeld + time.Second)
		if said := use.current().secrets.hide("canary-value token-of-vault"); said != "canary-value "+hidden {
			t.Errorf("got %q", said)
		}
		use.close()
		synctest.Wait()
	})
}

func TestHidesSecretsInWhatAParameterizedPluginAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := &fakes{}
		pool := made.pool()
		use := configured(t, pool, "token-of-vault")
		err := use.call(context.Background(), pulumirpc.ResourceProvider_Parameterize_FullMethodName,
			&pulumirpc.ParameterizeRequest{}, &pulumirpc.ParameterizeResponse{})
		if err != nil {
			t.Fatal(err)
		}
		made.want(t, 2)
		made.all[1].does["Construct"] = func(context.Context) error { return errors.New("no canary-value here") }
		err = use.call(context.Background(), pulumirpc.ResourceProvider_Construct_FullMethodName,
			&pulumirpc.ConstructRequest{Inputs: secretStruct(t, "value", "canary-value")}, &pulumirpc.ConstructResponse{})
		if got := status.Convert(err).Message(); got != "no [secret] here" {
			t.Errorf("got %v", got)
		}
		use.close()
		time.Sleep(pluginIdle)
		synctest.Wait()
		if made.all[1].ended.Load() != 1 {
			t.Error("the process of one update was to end with it")
		}
	})
}
