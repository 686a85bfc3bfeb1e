package scram

import (
	"encoding/base64"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	xdg "github.com/xdg-go/scram"
)

// RFC 7677, section 3: the exchange of user "user" with password "pencil". Only
// the server's holding of the right keys produces its signature, and only the
// right StoredKey accepts the client's proof.
func TestVerifierServesTheExchangeOfRFC7677(t *testing.T) {
	salt, err := base64.StdEncoding.DecodeString("W22ZaJ0SNY7soEsUEjb6gQ==")
	if err != nil {
		t.Fatal(err)
	}
	got, err := verifier("pencil", salt, 4096)
	if err != nil {
		t.Fatal(err)
	}
	server, err := xdg.SHA256.NewServer(func(string) (xdg.StoredCredentials, error) {
		return parse(t, got), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// The server appends its part of the nonce to the client's.
	conversation := server.WithNonceGenerator(func() string { return "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0" }).NewConversation()
	first, err := conversation.Step("n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
	if err != nil {
		t.Fatal(err)
	}
	final, err := conversation.Step("c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
		"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
	}
	if diff := cmp.Diff(want, []string{first, final}); diff != "" {
		t.Error(diff)
	}
}

func TestVerifiersHaveTheFormOfPostgreSQLAndAFreshSalt(t *testing.T) {
	form := regexp.MustCompile(`^SCRAM-SHA-256\$4096:[A-Za-z0-9+/]{22}==\$[A-Za-z0-9+/]{43}=:[A-Za-z0-9+/]{43}=$`)
	seen := map[string]bool{}
	for range 3 {
		got, err := Verifier("one password")
		if err != nil {
			t.Fatal(err)
		}
		if !form.MatchString(got) {
			t.Errorf("malformed: %s", got)
		}
		if seen[got] {
			t.Error("two verifiers are equal")
		}
		seen[got] = true
	}
}

// The values are libpq's, by PQencryptPasswordConn of PostgreSQL 15 with the
// same salt.
func TestPrepareIsLibpqs(t *testing.T) {
	for name, test := range map[string]struct{ password, want string }{
		"ASCII":                      {`it's "q" \back $HOME`, `it's "q" \back $HOME`},
		"blanks at the ends":         {" x ", " x "},
		"soft hyphen goes":           {"I\u00adX", "IX"},
		"NFKC":                       {"\u2168\u00aa\ufb01", "IXafi"},
		"composition":                {"e\u0301", "\u00e9"},
		"no-break space":             {"a\u00a0b", "a b"},
		"zero width space":           {"a\u200bb", "a b"},
		"CJK and emoji of Unicode 3": {"\u4e2d\u2603", "\u4e2d\u2603"},
		"later emoji is unassigned":  {"\U0001F600\u00aa", "\U0001F600\u00aa"},
		"control character":          {"a\u0007\u00aa", "a\u0007\u00aa"},
		"right to left":              {"\u0627\u0628", "\u0627\u0628"},
		"mixed directions":           {"\u0627\u00aa1", "\u0627\u00aa1"},
		"nothing left":               {"\u00ad", "\u00ad"},
		"not UTF-8":                  {"\xff\u00aa", "\xff\u00aa"},
		"later ideograph":            {"\uf9a6\u00aa\ufab8", "\uf9a6\u00aa\ufab8"},
		"later letter":               {"\ua7f9", "\ua7f9"},
		"Arabic ligature":            {"\ufd3d", "\u0627\u064b"},
		"private use":                {"\ue000\u00aa", "\ue000\u00aa"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, prepare(test.password)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func parse(t *testing.T, text string) xdg.StoredCredentials {
	t.Helper()
	parts := regexp.MustCompile(`^SCRAM-SHA-256\$4096:(.+)\$(.+):(.+)$`).FindStringSubmatch(text)
	if parts == nil {
		t.Fatalf("malformed: %s", text)
	}
	var raw [3]string
	for i, part := range parts[1:] {
		decoded, err := base64.StdEncoding.DecodeString(part)
		if err != nil {
			t.Fatal(err)
		}
		raw[i] = string(decoded)
	}
	return xdg.StoredCredentials{
		KeyFactors: xdg.KeyFactors{Salt: raw[0], Iters: 4096},
		StoredKey:  []byte(raw[1]), ServerKey: []byte(raw[2]),
	}
}
