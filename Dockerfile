# The programs of the PackFinderz backend in one image; the command says which runs. It is at the top of the repository because
# Heroku builds with the folder of the Dockerfile as its context, and the module in packfinderz/ stands on the ones around it.
#
#   docker build -t packfinderz .
#   docker run --env-file packfinderz/.env packfinderz                                # the publisher
#   docker run --env-file packfinderz/.env packfinderz /bin/outbox-publisher cleanup
#   docker run --env-file packfinderz/.env packfinderz /bin/api migrate
FROM golang:1.26 AS build
WORKDIR /src
COPY . .
RUN cd packfinderz && CGO_ENABLED=0 GOWORK=off go build -trimpath -o /out/ ./cmd/outbox-publisher ./cmd/worker ./cmd/api

# Little but the programs, and the certificates that Google and a database over TLS are checked against.
FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/ /bin/
# Heroku hands the commands of heroku.yml to a shell.
COPY --from=busybox:stable-musl /bin/busybox /bin/sh
USER 65532:65532
# Health and readiness are asked from outside of the container. Heroku sets a PORT of its own.
ENV PORT=8081
CMD ["/bin/outbox-publisher"]
