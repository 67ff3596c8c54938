package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pulumi/pulumi/pkg/v3/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// A shorter secret would hide parts of words, and is none.
const shortestSecret = 4

// How long the secrets of a resource are looked for in what a plugin prints, after it has worked on the resource.
const secretsHeld = time.Minute

// secretWords are the secrets that a plugin knows: of its configuration, and of the resources that it works on.
type secretWords struct {
	mutex sync.Mutex
	held  map[string]int
}

func newSecretWords() *secretWords { return &secretWords{held: map[string]int{}} }

func (s *secretWords) hold(properties resource.PropertyMap) { s.count(properties, 1) }
func (s *secretWords) drop(properties resource.PropertyMap) { s.count(properties, -1) }

func (s *secretWords) count(properties resource.PropertyMap, by int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	secretStrings(resource.NewObjectProperty(properties), false, func(word string) {
		for _, form := range formsOf(word) {
			if s.held[form] += by; s.held[form] <= 0 {
				delete(s.held, form)
			}
		}
	})
}

// formsOf are what a plugin may print of a secret: all of it, as it stands in JSON, and each of its lines, as output is read
// line by line.
func formsOf(secret string) []string {
	quoted := &strings.Builder{}
	encoder := json.NewEncoder(quoted)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(secret) // a string never fails
	inJSON := strings.TrimSpace(quoted.String())
	forms := []string{secret, inJSON[1 : len(inJSON)-1]}
	for line := range strings.Lines(secret) {
		forms = append(forms, strings.TrimSpace(line))
	}
	forms = slices.DeleteFunc(forms, func(form string) bool { return len(form) < shortestSecret })
	slices.Sort(forms)
	return slices.Compact(forms)
}

// hide replaces secrets, the longest first.
func (s *secretWords) hide(text string) string {
	s.mutex.Lock()
	words := slices.SortedFunc(maps.Keys(s.held), func(a, b string) int { return len(b) - len(a) })
	s.mutex.Unlock()
	for _, word := range words {
		text = strings.ReplaceAll(text, word, hidden)
	}
	return text
}

// hideIn keeps an error as it is when it has no secrets. Resources that an error tells of keep theirs: they are for the state.
func (s *secretWords) hideIn(err error) error {
	if err == nil {
		return nil
	}
	told := status.Convert(err).Proto()
	told.Message = s.hide(told.Message)
	for i, detail := range told.Details {
		message, err := detail.UnmarshalNew()
		if err != nil {
			continue
		}
		switch of := message.(type) {
		case *pulumirpc.ErrorResourceInitFailed:
			for j := range of.Reasons {
				of.Reasons[j] = s.hide(of.Reasons[j])
			}
		case *pulumirpc.ErrorCause:
			of.Message, of.StackTrace = s.hide(of.Message), s.hide(of.StackTrace)
		case *pulumirpc.InputPropertiesError:
			for _, failed := range of.Errors {
				failed.Reason = s.hide(failed.Reason)
			}
		default:
			continue // its texts are of the plugin's schema
		}
		if hidden, err := anypb.New(message); err == nil {
			told.Details[i] = hidden
		}
	}
	return status.ErrorProto(told)
}

// propertiesIn are the properties that a request or an answer has.
func propertiesIn(message proto.Message) resource.PropertyMap {
	found := resource.PropertyMap{}
	message.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if field.Message() == nil || field.IsList() || field.IsMap() {
			return true
		}
		properties, isStruct := value.Message().Interface().(*structpb.Struct)
		if !isStruct {
			return true
		}
		options := plugin.MarshalOptions{KeepUnknowns: true, KeepSecrets: true, KeepResources: true, KeepOutputValues: true}
		if of, err := plugin.UnmarshalProperties(properties, options); err == nil {
			found[resource.PropertyKey(field.Name())] = resource.NewObjectProperty(of)
		}
		return true
	})
	return found
}

func secretStrings(value resource.PropertyValue, within bool, found func(string)) {
	switch {
	case value.IsSecret():
		secretStrings(value.SecretValue().Element, true, found)
	case value.IsOutput():
		secretStrings(value.OutputValue().Element, within || value.OutputValue().Secret, found)
	case value.IsString() && within:
		found(value.StringValue())
	case value.IsArray():
		for _, item := range value.ArrayValue() {
			secretStrings(item, within, found)
		}
	case value.IsObject():
		for _, item := range value.ObjectValue() {
			secretStrings(item, within, found)
		}
	}
}
