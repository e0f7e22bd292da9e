package admin

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// maxLoginName bounds the names that failed logins are remembered by.
const maxLoginName = 200

type loginForm struct {
	Name, Next, Error string
	// Passwords is set if there are users who can log in.
	Passwords bool
}

func (c *Console) loginPage(w http.ResponseWriter, r *request) error {
	return c.showLogin(w, r, http.StatusOK, loginForm{Next: r.FormValue("next")})
}

func (c *Console) showLogin(w http.ResponseWriter, r *request, status int, form loginForm) error {
	form.Passwords = len(c.access.Credentials.users) > 0
	return c.render(w, r, status, "login", "Log in", form)
}

func (c *Console) logIn(w http.ResponseWriter, r *request) error {
	form := loginForm{Name: r.PostForm.Get("name"), Next: r.PostForm.Get("next")}
	if len(form.Name) > maxLoginName {
		return badInput(fmt.Errorf("the name is longer than %d bytes", maxLoginName))
	}
	from := c.access.Proxy.client(r.Request)
	keys := []string{"address " + from, "name " + form.Name}
	if wait, ok := c.logins.try(keys...); !ok {
		seconds := int(wait.Seconds()) + 1
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
		form.Error = fmt.Sprintf("Too many attempts. Try again in %d s.", seconds)
		return c.showLogin(w, r, http.StatusTooManyRequests, form)
	}
	is, ok := c.access.Credentials.logIn(form.Name, r.PostForm.Get("password"))
	if !ok {
		c.log.Warn("a login failed", "name", form.Name, "from", from)
		form.Error = "Name or password is wrong."
		return c.showLogin(w, r, http.StatusUnauthorized, form)
	}
	c.logins.giveBack(keys...)
	c.sessions.end(r.visit)
	c.setVisit(w, r.Request, c.sessions.begin(is))
	c.log.Info("somebody logged in", "name", is.Name, "role", is.Role.String(), "from", from)
	seeOther(w, c.prefix+localPath(form.Next))
	return nil
}

func (c *Console) logOut(w http.ResponseWriter, r *request) error {
	c.sessions.end(r.visit)
	seeOther(w, c.prefix+"/login")
	return nil
}

// localPath returns a path of ours, whatever a link contains: no address of another server, nor anything that
// browsers take for one.
func localPath(next string) string {
	if !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return "/"
	}
	return next
}
