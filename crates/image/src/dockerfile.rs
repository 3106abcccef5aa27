/// A Dockerfile that makes the same image with Docker, for those who build with that: dependencies in a layer of their own, a static
/// program, no shell, and a user that is nobody.
pub fn dockerfile(name: &str) -> String {
    format!(
        "# Written by `watchkeeper image --dockerfile`. `watchkeeper image` makes such an image without Docker.
# Dependencies are built before the sources are there: they are built again when Cargo.lock changes, and not before.
FROM docker.io/library/rust:1-alpine AS chef
RUN apk add --no-cache build-base=~0.5 && cargo install --locked cargo-chef@0.1.78
WORKDIR /build

FROM chef AS plan
COPY . .
RUN cargo chef prepare --recipe-path recipe.json

FROM chef AS build
COPY --from=plan /build/recipe.json recipe.json
RUN cargo chef cook --release --locked --recipe-path recipe.json
COPY . .
RUN cargo build --release --locked --bin {name}

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /build/target/release/{name} /{name}
USER 65532:65532
ENTRYPOINT [\"/{name}\"]
"
    )
}
