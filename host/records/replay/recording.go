package replay

import (
	"bytes"
	"compress/flate"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"openskill/host/records"
	"openskill/sdk/skill"
)

// Recording is what is kept of one run.
type Recording struct {
	Host    string          `json:"host,omitempty"` // version of openSkill
	Started records.Started `json:"started"`
	Runner  skill.Kind      `json:"runner"`
	Entry   string          `json:"entry"`
	Input   []byte          `json:"input,omitempty"`  // of a call, byte by byte as the guest read it
	Files   []skill.FileRef `json:"files,omitempty"`  // beside those that the input names
	Script  *Line           `json:"script,omitempty"` // of a script's run
	Session *Before         `json:"session,omitempty"`
	Limits  Limits          `json:"limits"`
	Granted Granted         `json:"granted"`
	Seen    []skill.Seen    `json:"seen,omitempty"`
	More    bool            `json:"more,omitempty"` // it looked at more than Seen has
	End     End             `json:"end"`

	Draws []byte `json:"-"`
}

// Line is the command line of a script.
type Line struct {
	Args  []string `json:"args"`
	Stdin []byte   `json:"stdin"`
}

// Limits are those that held, to the unit.
type Limits struct {
	Timeout time.Duration `json:"timeout_ns"`
	Memory  uint64        `json:"memory"`
	Fuel    uint64        `json:"fuel"`
	Output  uint64        `json:"output"`
	Scratch uint64        `json:"scratch"`
}

// Granted is what the run was let touch, without a value and without a path of the host.
type Granted struct {
	Data    bool       `json:"data"`
	Scratch bool       `json:"scratch"`
	Key     string     `json:"key,omitempty"` // which one the hashes are made with; "" for none
	Env     []Variable `json:"env,omitempty"`
}

// Variable is one of the environment.
type Variable struct {
	Name string `json:"name"`
	Hash string `json:"hash,omitempty"` // keyed, of name and value; "" on a host without a key
}

// End is how a run ended.
type End struct {
	Success   bool                   `json:"success"`
	Code      skill.Code             `json:"code,omitempty"`
	Message   string                 `json:"message,omitempty"`
	Data      []byte                 `json:"data,omitempty"` // JSON; of a success
	Artifacts []records.ArtifactInfo `json:"artifacts,omitempty"`
	Fuel      uint64                 `json:"fuel"`
}

// endOf is the end that a result tells.
func endOf(r *skill.Result) End {
	e := End{Success: r.Success, Data: r.Data, Fuel: r.Meta.FuelUsed}
	if r.Error != nil {
		e.Code, e.Message = r.Error.Code, r.Error.Message
	}
	for _, a := range r.Meta.Artifacts {
		sum := sha256.Sum256(a.Data)
		e.Artifacts = append(e.Artifacts, records.ArtifactInfo{Name: a.Name, Size: a.Size, SHA256: hex.EncodeToString(sum[:])})
	}
	return e
}

// grantedOf describes grants. key is a secret of the host, nil for none.
func grantedOf(g *skill.Grants, key []byte) Granted {
	out := Granted{Data: g.Data != "", Scratch: g.Scratch}
	if len(key) > 0 && len(g.Env) > 0 {
		sum := sha256.Sum256(append([]byte("openskill replay key\x00"), key...))
		out.Key = hex.EncodeToString(sum[:8])
	}
	for _, v := range g.Env {
		name, value, _ := strings.Cut(v, "=")
		variable := Variable{Name: name}
		if len(key) > 0 {
			mac := hmac.New(sha256.New, key)
			_, _ = fmt.Fprintf(mac, "openskill replay variable\x00%d\x00%s%s", len(name), name, value) // a hash takes all
			variable.Hash = hex.EncodeToString(mac.Sum(nil))
		}
		out.Env = append(out.Env, variable)
	}
	slices.SortFunc(out.Env, func(a, b Variable) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// The form in which a recording is kept: after a mark and a version the length of a
// header, which is JSON, the header, the draws, and SHA-256 of all that; all of it
// compressed by package compress/flate.
const mark = "OSKREC\x01"

// most bytes of any recording, whatever wrote it.
const ceiling = 1 << 30

var (
	// errTooLarge is a recording over its bound.
	errTooLarge = errors.New("replay: the recording is too large")
	// ErrDamaged is what is no recording, whole and as it was written.
	ErrDamaged = errors.New("replay: the recording is damaged or from another openSkill version")
)

// compressors are kept: to make one takes a megabyte, most recordings a few hundred bytes.
var compressors sync.Pool

// encode gives the form of r, which has at most that many bytes before it is compressed,
// and how many it has.
func (r *Recording) encode(most uint64) (body []byte, size int, err error) {
	header, err := json.Marshal(r)
	if err != nil {
		return nil, 0, fmt.Errorf("replay: encode a recording: %w", err)
	}
	b := make([]byte, 0, len(mark)+binary.MaxVarintLen64+len(header)+len(r.Draws)+sha256.Size)
	b = binary.AppendUvarint(append(b, mark...), uint64(len(header)))
	b = append(append(b, header...), r.Draws...)
	sum := sha256.Sum256(b)
	b = append(b, sum[:]...)
	if uint64(len(b)) > min(most, ceiling) {
		return nil, len(b), errTooLarge
	}
	var out bytes.Buffer
	w, ok := compressors.Get().(*flate.Writer)
	if !ok {
		if w, err = flate.NewWriter(nil, flate.BestSpeed); err != nil {
			return nil, len(b), fmt.Errorf("replay: compress a recording: %w", err)
		}
	}
	defer compressors.Put(w)
	w.Reset(&out)
	_, err = w.Write(b)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, len(b), fmt.Errorf("replay: compress a recording: %w", err)
	}
	return out.Bytes(), len(b), nil
}

// decode reads what encode gave; size is what that said. The error is ErrDamaged.
func decode(body []byte, size int64) (*Recording, error) {
	if size < 0 || size > ceiling {
		return nil, ErrDamaged
	}
	packed := bytes.NewReader(body)
	b, err := io.ReadAll(io.LimitReader(flate.NewReader(packed), size+1))
	if err != nil || int64(len(b)) != size || packed.Len() > 0 {
		return nil, ErrDamaged
	}
	return parse(b)
}

// parse reads the form before it is compressed. The error is ErrDamaged.
func parse(b []byte) (*Recording, error) {
	if len(b) < len(mark)+sha256.Size || string(b[:len(mark)]) != mark {
		return nil, ErrDamaged
	}
	sealed := b[:len(b)-sha256.Size]
	if sum := sha256.Sum256(sealed); string(sum[:]) != string(b[len(sealed):]) {
		return nil, ErrDamaged
	}
	rest := sealed[len(mark):]
	n, width := binary.Uvarint(rest)
	if width <= 0 || n > uint64(len(rest)-width) {
		return nil, ErrDamaged
	}
	header, draws := rest[width:width+int(n)], rest[width+int(n):] // compared
	r := &Recording{Draws: draws}
	d := json.NewDecoder(bytes.NewReader(header))
	d.DisallowUnknownFields()
	if err := d.Decode(r); err != nil {
		return nil, ErrDamaged
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, ErrDamaged
	}
	if r.Started.ExecutionID == "" || len(draws) == 0 || (r.Script == nil) != (r.Started.Script == "") || r.Session != nil && len(r.Session.Seed) != len(skill.SessionState{}.Seed) {
		return nil, ErrDamaged
	}
	return r, nil
}
