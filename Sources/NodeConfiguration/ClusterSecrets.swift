package import Cluster
import Telemetry
import Wire

extension Configuration {
    /// The settings for finding the cluster at the start.
    package var joinSettings: ClusterDiscovery.Settings {
        var search = ClusterDiscovery.Settings(hasSeeds: !self.join.isEmpty, expects: self.expect)
        search.timeMax = self.joinTimeout
        return search
    }
}

/// The reader of the file with a cluster's secrets, the setting `cluster-secret-file`.
enum ClusterSecrets {
    /// The largest number of secrets in a file, more than any rotation needs.
    private static let secretsMax = 16
    /// The longest secret in bytes.
    private static let secretBytesMax = 1024

    /// Reads a file with one secret per line, except empty lines and those that begin with `#`.
    ///
    /// - Returns: the context for connections with peers.
    /// - Throws: the fault of a file that cannot be read, has no secrets or too many, or one that
    ///   is too short or too long.
    static func read(_ path: String) throws(ConfigurationError) -> TLSPeerContext {
        let file = SettingFile(Setting.cluster.clusterSecretFile, path, allowed)
        let lines = try file.read().split(separator: 0x0A, omittingEmptySubsequences: false)
        var secrets: [[UInt8]] = []
        for (index, line) in lines.enumerated() {
            let secret = Array(line.last == 0x0D ? line.dropLast() : line)
            if secret.isEmpty || secret.first == UInt8(ascii: "#") { continue }
            guard (TLSPeerContext.secretBytesMin...secretBytesMax).contains(secret.count) else {
                throw file.error("line \(index + 1) has \(secret.count) bytes")
            }
            secrets.append(secret)
        }
        guard (1...secretsMax).contains(secrets.count) else {
            throw file.error("it contains \(secrets.count) secrets")
        }
        do throws(TLSSetupError) {
            return try TLSPeerContext(secrets: secrets)
        } catch {
            throw file.error(error.message)
        }
    }

    /// The description of a valid file of secrets.
    private static let allowed =
        "a file of 1 to \(secretsMax) lines, each a secret of \(TLSPeerContext.secretBytesMin) "
        + "to \(secretBytesMax) bytes"
}
