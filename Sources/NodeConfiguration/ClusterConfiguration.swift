package import Cluster
package import Ground
package import Telemetry
package import Wire

/// The settings of a node's cluster.
package struct ClusterConfiguration: Sendable {
    /// The path of the file with the cluster's secrets; `nil` for a node that is in no cluster.
    package var secretFile: String?
    /// The addresses at which other nodes may be; a name stands for all its addresses.
    package var seeds: [PeerAddress]
    /// The operator's name of this node; `nil` for none.
    package var nodeName: String?
    /// The number of nodes that a new cluster begins with; `nil` for all that respond.
    package var expectedMembers: Int?
    /// Maximum time that the node looks for its cluster before it serves fenced.
    package var joinTimeout: Interval
    /// The address on which peers are served.
    package var listen: ListenAddress
    /// The address that other nodes are given; `nil` to derive it from ``listen``.
    package var advertised: PeerAddress?
    /// The number of nodes that own an entry.
    package var replicas: Int
    /// The weight of this node on the ring.
    package var weight: UInt16
    /// The largest weight that counts for any node.
    package var weightMax: UInt16
    /// Maximum time for the handoff before a stop; zero for no handoff.
    package var handoffTimeout: Interval
    /// The fence's duration, see `Cluster.Fence.Settings`; `nil` for off.
    package var fence: Interval?
    /// The silence after which a member is removed from the voter set.
    package var forgetAfter: Interval
    /// The context for connections with peers, from the secrets as of the last load; `nil` without
    /// a file.
    package var secrets: TLSPeerContext?

    /// Creates the settings from resolved values; the secrets are not read yet.
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
    /// The settings for finding the cluster at the start.
    package var joinSettings: ClusterDiscovery.Settings {
        var search = ClusterDiscovery.Settings(hasSeeds: !seeds.isEmpty, expects: expectedMembers)
        search.timeMax = joinTimeout
        return search
    }

    /// The largest number of secrets in a file, more than any rotation needs.
    private static let secretsMax = 16
    /// The longest secret in bytes.
    private static let secretBytesMax = 1024

    /// Reads a file of secrets: one per line, without empty lines and those that begin with `#`.
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

    /// The description of a valid file of secrets.
    static let secretsFormat =
        "a file of 1 to \(secretsMax) lines, each a secret of \(TLSPeerContext.secretBytesMin) "
        + "to \(secretBytesMax) bytes"
}
