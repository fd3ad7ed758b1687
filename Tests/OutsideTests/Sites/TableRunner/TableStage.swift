import Foundation
import Harness

/// The stage of the table: an origin, and a node with a site for each kind of setting, alone or in
/// a cluster.
struct TableStage {
    let origin: ScriptedOrigin
    let node: NodeProcess
    let scripts: Scripts
    private let folder: TemporaryFolder
    /// The nodes that own the keys requested from ``node``; empty if it is alone.
    let owners: [NodeProcess]

    /// The handlers of the cases, by the first segment of the path.
    final class Scripts: Sendable {
        typealias Route = @Sendable (OriginRequest) -> OriginResponse

        private let routes = LockedBox([String: Route]())

        func set(_ path: String, _ route: Route?) {
            routes.change { $0[path] = route }
        }

        func answer(_ request: OriginRequest) -> OriginResponse {
            let path = "/" + (request.path.split(separator: "/").first ?? "")
            return routes.value[path]?(request) ?? .text("no such case", status: "404 Not Found")
        }
    }

    /// Limits that a silent origin reaches soon, and no circuit breaker between cases.
    private static let flags = [
        "--origin-connect-timeout", "500ms", "--origin-first-byte-timeout", "500ms",
        "--origin-idle-timeout", "500ms", "--origin-circuit-failures", "0",
    ]

    /// Starts the stage; `count` further nodes own all but one in a hundred keys.
    init(owners count: Int = 0) throws {
        let (origin, scripts) = (try ScriptedOrigin(), Scripts())
        origin.onAnyOtherPath { scripts.answer($0) }
        folder = try TemporaryFolder()
        let file = try folder.write(Self.settings(origin.url("")), to: "nuthatch.yaml")
        let flags = ["--config", file.path] + Self.flags
        (self.origin, self.scripts) = (origin, scripts)
        guard count > 0 else {
            (node, owners) = (try NodeProcess(flags), [])
            return
        }
        let secret = try folder.write(String(repeating: "s", count: 32), to: "secret")
        let ports = try (0...count).map { _ in try ReservedPort.forProcess() }
        let joins = ports.prefix(2).flatMap { ["--join", "127.0.0.1:\($0)"] }
        let nodes = try NodeProcess.cluster(of: count + 1) { index, waits in
            let weight = index == 0 ? "1" : "\(400 / count)"
            let own = ["--peer-listen", "127.0.0.1:\(ports[index])", "--ring-weight", weight]
            return try NodeProcess(
                flags + own + joins + ["--cluster-secret-file", secret.path], waits: waits)
        }
        (node, owners) = (nodes[0], Array(nodes.dropFirst()))
        let isSettled = Deadline.seconds(30).waitUntil {
            nodes.allSatisfy { $0.isCurrent(among: nodes.count) }
        }
        guard isSettled else { throw NotSettled() }
    }

    /// The error for nodes of the cluster that do not know each other.
    struct NotSettled: Error {}

    /// Waits until served responses are stored: in a cluster one node stores them a moment later,
    /// once the owner has confirmed that they are complete.
    ///
    /// A response that the origin never ends is waited for only briefly.
    func settle() {
        guard !owners.isEmpty else { return }
        _ = Deadline.seconds(2).waitUntil {
            ([node] + owners).allSatisfy {
                $0.metric("nuthatch_waiters") == 0
                    && $0.metric("nuthatch_memory_part_bytes{part=\"fetches\"}") == 0
            }
        }
    }

    func stop() {
        for node in [node] + owners { node.kill() }
    }

    /// The settings of the sites; `a.example` is the default of the cases, and `bare.example` has
    /// no settings.
    private static func settings(_ origin: String) -> String {
        let special: [String: [String]] = [
            "a.example": [], "b.example": [],
            "ttl.example": ["default-ttl: 1h"],
            "ceiling.example": ["ttl-limit: 50s"],
            "negative.example": ["negative-ttl:", "  404: 1h", "  503: 1h"],
            "client.example": ["client-ttl: 30s"],
            "grace.example": ["grace: 1h"],
            "swr.example": ["stale-while-revalidate: 1h"],
            "strict.example": ["honours-request-control: off"],
            "query.example": ["ignore-query: [utm_*, fbclid]"],
            "get.example": ["methods: [GET, HEAD]"],
            "text.example": ["types: [text/plain]"],
            "small.example": ["object-limit: 1KiB"],
            "fields.example": [
                "set-response-fields:", "  Access-Control-Allow-Origin: \"*\"",
                "remove-response-fields: [X-Powered-By]", "set-request-fields:",
                "  X-Site: fields", "remove-request-fields: [X-Secret]",
            ],
            "few.example": ["forward-fields: [Accept]"],
            "cookies.example": ["stores-set-cookie: on"],
            "anyone.example": ["ignore-credentials: on", "default-ttl: 1h"],
            "named-fields.example": ["forward-fields: [all, X-Forwarded-Host, Max-Forwards]"],
            "trailers.example": ["request-trailers: on"],
            "tags.example": ["keep-tags: on"],
            "as-is.example": ["rewrite-location: off"],
            "owntags.example": ["tags: [X-Tags]"],
            "reduced.example": ["reduce: [accept-encoding]"],
            "named.example": ["host: other.example"],
            "quiet.example": ["via: off", "forwarded-for: off"],
            "replaced.example": ["forwarded-for: replace"],
            "as-client.example": ["host: client"],
        ]
        // Request directives are part of RFC 9111, and off by default.
        let controlled = ["honours-request-control: on"]
        var lines = ["sites:", "  bare.example: \(origin)"]
        for (host, settings) in special.sorted(by: { $0.key < $1.key }) {
            let isStrict = settings.contains { $0.hasPrefix("honours-request-control") }
            lines += ["  \(host):", "    origin: \(origin)"]
            lines += (isStrict ? settings : settings + controlled).map { "    " + $0 }
        }
        return lines.joined(separator: "\n") + "\n"
    }
}
