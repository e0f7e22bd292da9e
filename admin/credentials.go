package admin

import (
	"bufio"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/crypto/bcrypt"
)

// tokenMark begins the hash of a bearer token; other hashes are of passwords.
const tokenMark = "sha256:"

// maxPassword is bcrypt's limit; it ignores what is beyond.
const maxPassword = 72

// Credentials are users with passwords, and bearer tokens of programs. Only hashes are kept. The zero value has none.
type Credentials struct {
	users  map[string]user
	tokens []token
}

type user struct {
	Identity
	hash []byte
}

type token struct {
	Identity
	hash [sha256.Size]byte
}

// ParseCredentials reads one user or token per line, as name:role:hash. It ignores empty lines and lines that begin with
// #. NewUser and NewToken make such lines.
func ParseCredentials(r io.Reader) (Credentials, error) {
	found := Credentials{users: map[string]user{}}
	lines := bufio.NewScanner(r)
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		// Never repeat the line itself: a password may be where a hash should be.
		if err := found.add(line); err != nil {
			return Credentials{}, fmt.Errorf("credentials, line %d: %w", number, err)
		}
	}
	if err := lines.Err(); err != nil {
		return Credentials{}, fmt.Errorf("read the credentials: %w", err)
	}
	return found, nil
}

func (c *Credentials) add(line string) error {
	name, rest, _ := strings.Cut(line, ":")
	role, hash, ok := strings.Cut(rest, ":")
	if !ok || name == "" {
		return errors.New("it must be name:role:hash; make it with outbox console user NAME or outbox console token NAME")
	}
	may, err := ParseRole(role)
	if err != nil {
		return err
	}
	is := Identity{Name: name, Role: may}
	if digits, ok := strings.CutPrefix(hash, tokenMark); ok {
		sum, err := hex.DecodeString(digits)
		if err != nil || len(sum) != sha256.Size {
			return errors.New("the hash of the token is not 64 hexadecimal digits; make it with outbox console token NAME")
		}
		c.tokens = append(c.tokens, token{is, [sha256.Size]byte(sum)})
		return nil
	}
	if _, err := bcrypt.Cost([]byte(hash)); err != nil {
		return errors.New("the hash is not one of bcrypt; make it with outbox console user NAME")
	}
	if _, twice := c.users[name]; twice {
		return fmt.Errorf("there is a user %q already", name)
	}
	c.users[name] = user{is, []byte(hash)}
	return nil
}

// NewUser returns the line of a user for ParseCredentials.
func NewUser(name string, role Role, password string) (string, error) {
	if err := checkName(name); err != nil {
		return "", err
	}
	switch {
	case len(password) < 8:
		return "", errors.New("the password is too short; take at least 8 characters")
	case len(password) > maxPassword:
		return "", fmt.Errorf("the password is too long; bcrypt looks at %d bytes", maxPassword)
	}
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.DefaultCost)
	if err != nil {
		return "", fmt.Errorf("hash the password: %w", err)
	}
	return name + ":" + role.String() + ":" + string(hash), nil
}

// NewToken makes a bearer token. It returns the secret, which is stored nowhere, and the token's line for
// ParseCredentials.
func NewToken(name string, role Role) (secret, line string, err error) {
	if err := checkName(name); err != nil {
		return "", "", err
	}
	secret = rand.Text() + rand.Text()
	sum := sha256.Sum256([]byte(secret))
	return secret, name + ":" + role.String() + ":" + tokenMark + hex.EncodeToString(sum[:]), nil
}

// checkName rejects names that a line could not hold unchanged.
func checkName(name string) error {
	if name == "" || name != strings.TrimSpace(name) || strings.ContainsAny(name, ":\n\r") || strings.HasPrefix(name, "#") {
		return fmt.Errorf("the name %q is empty, has a colon or a line break, or begins with a space or #", name)
	}
	return nil
}

func (c *Credentials) empty() bool { return len(c.users) == 0 && len(c.tokens) == 0 }

// nobodysHash is compared with if there is no such user, so that the time of the answer does not reveal which names
// exist. It is the hash of a random password.
const nobodysHash = "$2a$10$cILfa5pPZzWnRqBJln..duY3ttowAKPSKQQEvpt2BFMMw6v4B1Qee"

func (c *Credentials) logIn(name, password string) (Identity, bool) {
	is, known := c.users[name]
	hash := is.hash
	if !known {
		hash = []byte(nobodysHash)
	}
	if len(password) > maxPassword {
		password = ""
	}
	right := bcrypt.CompareHashAndPassword(hash, []byte(password)) == nil
	return is.Identity, known && right
}

// bearer finds the owner of a token. Every hash is compared in full.
func (c *Credentials) bearer(secret string) (Identity, bool) {
	sum := sha256.Sum256([]byte(secret))
	var found Identity
	matches := 0
	for i := range c.tokens {
		if subtle.ConstantTimeCompare(sum[:], c.tokens[i].hash[:]) == 1 {
			found, matches = c.tokens[i].Identity, matches+1
		}
	}
	return found, matches > 0
}
