package wake

// ListenAndLook is Listen that looks at the table in its own time.
var ListenAndLook = listen
