package import Cluster
package import Ground
package import Telemetry
package import Wire

/// Whom a node forms a cluster with, and how.
package struct ClusterConfiguration: Sendable {
    /// Nil for a node that stays alone.
    package var secretFile: String?
    /// Where others may be; names stand for all their addresses.
    package var seeds: [PeerAddress]
    /// What the operator calls this node; nil if he does not.
    package var nodeName: String?
    /// How many nodes the cluster is to begin with; nil for as many as answer.
    package var expectedMembers: Int?
    /// How long the node looks for a cluster before it serves, fenced.
    package var joinTimeout: Interval
    package var listen: ListenAddress
    /// Nil for what ``listen`` comes to.
    package var advertised: PeerAddress?
    /// Nodes that keep an image.
    package var replicas: Int
    /// This node's share of the ring beside the others'.
    package var weight: UInt16
    /// What any node's share counts for at most.
    package var weightMax: UInt16
    /// How long a node that is told to stop hands over what it keeps; zero if it does not.
    package var handoffTimeout: Interval
    /// See `Cluster.Fence.Settings`; nil for off.
    package var fence: Interval?
    /// The same.
    package var forgetAfter: Interval
    /// What the file of secrets comes to, as it was last read; nil without one.
    package var secrets: TLSPeerContext?

    init(_ values: ConfigurationValues) {
        secretFile = values.path(.clusterSecretFile)
        seeds = values.hostPorts(.join).map { PeerAddress(host: $0.host, port: $0.port) }
        nodeName = values.name(.nodeName)
        expectedMembers = values.countUnlessZero(.expect)
        joinTimeout = values.interval(.joinTimeout)
        listen = values.address(.peerListen)
        advertised = values.hostPort(.peerAdvertise).map {
            PeerAddress(host: $0.host, port: $0.port)
        }
        replicas = values.count(.replicas)
        weight = UInt16(clamping: values.count(.ringWeight))
        weightMax = UInt16(clamping: values.count(.ringWeightLimit))
        handoffTimeout = values.interval(.handOverTimeout)
        fence = values.intervalUnlessOff(.fence)
        forgetAfter = values.interval(.forgetAfter)
    }
}

extension ClusterConfiguration {
    /// How this node looks for others.
    var joinSettings: ClusterDiscovery.Settings {
        var search = ClusterDiscovery.Settings(hasSeeds: !seeds.isEmpty, expects: expectedMembers)
        search.timeMax = joinTimeout
        return search
    }

    /// The most secrets of a file, more than any rotation needs.
    private static let secretsMax = 16
    /// The most bytes of a secret.
    private static let secretBytesMax = 1024

    /// Reads the file of secrets: one a line, empty lines and those that begin with `#` left out.
    static func secrets(_ path: String) throws(ConfigurationError) -> TLSPeerContext {
        let bytes: [UInt8]
        do throws(ConfigurationError) {
            bytes = try ConfigurationSources.read(path)
        } catch {
            guard case .unreadableFile(_, let reason) = error else { throw error }
            throw .clusterSecrets(path, reason: reason)
        }
        let lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false)
        var secrets: [[UInt8]] = []
        for (index, line) in lines.enumerated() {
            let secret = Array(line.last == 0x0D ? line.dropLast() : line)
            if secret.isEmpty || secret.first == UInt8(ascii: "#") { continue }
            guard (TLSPeerContext.secretBytesMin...secretBytesMax).contains(secret.count) else {
                throw .clusterSecrets(
                    path, reason: "line \(index + 1) holds \(secret.count) bytes")
            }
            secrets.append(secret)
        }
        guard (1...secretsMax).contains(secrets.count) else {
            throw .clusterSecrets(path, reason: "it holds \(secrets.count) secrets")
        }
        do throws(TLSSetupError) {
            return try TLSPeerContext(secrets: secrets)
        } catch {
            throw .clusterSecrets(path, reason: error.message)
        }
    }

    /// What a file of secrets must be.
    static let secretsFormat =
        "a file of 1 to \(secretsMax) lines, each a secret of \(TLSPeerContext.secretBytesMin) "
        + "to \(secretBytesMax) bytes"
}
