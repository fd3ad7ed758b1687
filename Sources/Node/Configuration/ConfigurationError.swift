import Admin
package import Ground
import HTTPRules
package import Telemetry

/// Why a node does not start with the settings it was given; nothing has been opened yet.
package enum ConfigurationError: Error, Hashable {
    /// One value is refused.
    case invalidSetting(SettingError)
    /// What the file says of a site is refused.
    case invalidSite(SiteFault)
    /// The file with the decision token is of no use.
    case decisionToken(String, reason: String)
    /// A file of certificates or keys is of no use.
    case tls(SettingName, file: String, reason: String)
    /// A file of issuers that a site names for its origin is of no use.
    case siteTLS(SitePattern, SiteOption, file: String, reason: String)
    /// A file with the value of a field that a site sets is of no use.
    case fieldFile(String, name: String, file: String, reason: String)
    /// A site says whom to believe over TLS, and its origin is reached without.
    case unusedSiteTrust(SitePattern, SiteOption, from: SettingSource)
    /// Certificates and keys do not go in pairs.
    case unpairedKeys(certificates: Int, keys: Int)
    /// A node that runs would begin or cease to speak TLS.
    case tlsToggled(off: Bool)
    /// A setting has a meaning only where there is TLS.
    case requiresTLS(SettingName, from: SettingSource)
    /// The file with the keys of signed URLs is of no use.
    case signingKeys(String, reason: String)
    /// The file with the tokens of PURGE is of no use.
    case purgeTokens(String, reason: String)
    /// The file with the tokens of operators is of no use.
    case adminTokens(String, reason: String)
    /// Operators beyond loopback are served, and nobody has to prove to be one.
    case unprotectedAdminPort(listen: ListenAddress, from: SettingSource)
    /// The file with the cluster's secrets is of no use.
    case clusterSecrets(String, reason: String)
    /// A setting has a meaning only in a cluster.
    case requiresClusterSecret(SettingName, from: SettingSource)
    /// A node that runs would join or leave its cluster.
    case clusterToggled(off: Bool)
    /// The file has a key that is no setting; the nearest setting, if one is near.
    case unknownKey(String, file: String, line: Int?, nearest: SettingName?)
    /// The file has a setting that only flag and environment may give.
    case notAllowedInFile(SettingName, file: String, line: Int?)
    /// The file is no YAML mapping of keys to values.
    case malformedFile(String, line: Int?, reason: String)
    case unreadableFile(String, reason: String)
    /// A setting is larger than another allows it to be; both as texts.
    case valueAboveLimit(
        SettingName, String, from: SettingSource, limit: SettingName, String,
        limitFrom: SettingSource)
    /// Four segments of the disk's log do not fit into its limit.
    case diskTooSmall(String, from: SettingSource, neededBytes: UInt64)
    /// Two sites answer to one Host.
    case duplicateSite(SitePattern, from: SettingSource, and: SettingSource)
    case tooManySites(Int)
    /// A site is to be signed, and there are no keys.
    case missingSigningKeys(SitePattern, from: SettingSource)
    /// A setting of a site, or of images, is larger than one of the node allows it to be; whose it
    /// is, and both values, as texts.
    case siteValueAboveLimit(String, SiteOption, String, limit: SettingName, String)
    /// Clients beyond loopback are served, and nobody said which origins may be fetched from.
    case missingOrigins(listen: ListenAddress, from: SettingSource)
}

extension ConfigurationError: CustomStringConvertible {
    /// One line for the operator, control bytes escaped.
    package var description: String {
        switch self {
        case .invalidSetting(let error):
            return error.description
        case .invalidSite(let fault):
            return fault.description
        case .decisionToken(let file, let reason):
            return "setting decision-token-file: \(file.quoted(limit: 4096)) cannot be used: "
                + "\(reason); allowed: a file of 16 to 256 visible ASCII characters in one line"
        case .tls(let name, let file, let reason):
            return "setting \(name.rawValue): \(file.quoted(limit: 4096)) cannot be used: "
                + "\(reason); allowed: a PEM file"
        case .siteTLS(let pattern, let option, let file, let reason):
            return
                "site \(pattern): \(option.rawValue): \(file.quoted(limit: 4096)) cannot be used: "
                + "\(reason); allowed: \(option.allowedFormat)"
        case .fieldFile(let whose, let name, let file, let reason):
            return "\(whose): set-request-fields: "
                + "\(name): \(file.quoted(limit: 4096)) cannot be used: \(reason); "
                + "allowed: a file of 1 to 4096 bytes in one line"
        case .unusedSiteTrust(let pattern, let option, let source):
            return "site \(pattern) (from \(source.text(for: .site))): \(option.rawValue) has no "
                + "meaning without TLS; allowed: with an origin that begins with https://"
        case .unpairedKeys(let certificates, let keys):
            return "setting tls-certificate is given \(certificates) times and setting tls-key "
                + "\(keys) times; allowed: a tls-key for each tls-certificate, in the same order"
        case .tlsToggled(let isOff):
            return "setting tls-certificate would turn TLS \(isOff ? "off" : "on") while the node "
                + "runs; allowed: other certificates; turn TLS \(isOff ? "off" : "on") at a restart"
        case .requiresTLS(let name, let source):
            return "setting \(name.rawValue) (from \(source.text(for: name))) has no meaning "
                + "without TLS; allowed: together with tls-certificate and tls-key"
        case .signingKeys(let file, let reason):
            return "setting signing-key-file: \(file.quoted(limit: 4096)) cannot be used: "
                + "\(reason); allowed: \(SigningKeyFault.allowed)"
        case .purgeTokens(let file, let reason):
            return "setting purge-token-file: \(file.quoted(limit: 4096)) cannot be used: "
                + "\(reason); allowed: \(TokenFile.allowed)"
        case .adminTokens(let file, let reason):
            return "setting admin-token-file: \(file.quoted(limit: 4096)) cannot be used: "
                + "\(reason); allowed: \(AdminTokenFile.allowedFormat)"
        case .unprotectedAdminPort(let listen, let source):
            return
                "setting admin-listen (from \(source.text(for: .adminListen))): \(listen) is not "
                + "a loopback address, and everybody who reaches it could do everything; allowed: "
                + "a loopback address, or together with admin-token-file or client-ca"
        case .clusterSecrets(let file, let reason):
            return "setting cluster-secret-file: \(file.quoted(limit: 4096)) cannot be used: "
                + "\(reason); allowed: \(ClusterConfiguration.secretsFormat)"
        case .requiresClusterSecret(let name, let source):
            return "setting \(name.rawValue) (from \(source.text(for: name))) has no meaning "
                + "without a secret; allowed: together with cluster-secret-file"
        case .clusterToggled(let isOff):
            return "setting cluster-secret-file would turn the cluster \(isOff ? "off" : "on") "
                + "while the node runs; allowed: other secrets; turn it \(isOff ? "off" : "on") "
                + "at a restart"
        case .unknownKey(let key, let file, let line, let nearest):
            let hint = nearest.map { "; perhaps \($0.rawValue)" } ?? ""
            return "\(key.quoted()) (from \(place(file, line))) is not a setting" + hint
        case .notAllowedInFile(let name, let file, let line):
            return
                "setting \(name.rawValue) (from \(place(file, line))) cannot be given in a file; "
                + "allowed: flag \(name.flag) or environment \(name.environmentName)"
        case .malformedFile(let file, let line, let reason):
            return "\(place(file, line)): \(reason); allowed: one YAML mapping, e.g. \(example)"
        case .unreadableFile(let file, let reason):
            return "setting config: \(file.quoted(limit: 4096)) cannot be read: \(reason)"
        case .valueAboveLimit(
            let name, let text, let source, let limit, let limitText, let limitSource):
            return
                "setting \(name.rawValue) (from \(source.text(for: name))): \(text) is too large; "
                + "allowed: at most setting \(limit.rawValue), which is \(limitText) "
                + "(from \(limitSource.text(for: limit)))"
        case .diskTooSmall(let text, let source, let needed):
            return
                "setting disk-limit (from \(source.text(for: .diskLimit))): \(text) is too small "
                + "for the four segments that a disk cache needs; allowed: at least \(needed)B, "
                + "e.g. --disk-limit 8MiB, or 0 for no disk cache"
        case .missingOrigins(let listen, let source):
            let name = SettingName.allowOrigin
            let site = SettingName.site
            return "setting \(name.rawValue) or \(site.rawValue) is needed because setting listen "
                + "(from \(source.text(for: .listen))) has \(listen), which is beyond loopback; "
                + "allowed: \(name.setting.kind.allowed), e.g. \(name.flag) '*.example.com', "
                + "or \(site.flag) \(site.setting.example ?? "")"
        case .duplicateSite(let pattern, let source, let other):
            return "site \(pattern) (from \(source.text(for: .site))) is given twice "
                + "(also from \(other.text(for: .site))); allowed: each Host once"
        case .tooManySites(let count):
            return "\(count) sites are given; allowed: at most \(ConfigurationValues.sitesMax)"
        case .missingSigningKeys(let pattern, let source):
            let keys = SettingName.signingKeyFile
            return "site \(pattern) (from \(source.text(for: .site))): signed is on; "
                + "allowed: only with setting \(keys.rawValue), "
                + "e.g. \(keys.flag) \(keys.setting.example ?? "")"
        case .siteValueAboveLimit(let whose, let option, let text, let limit, let limitText):
            return "\(whose): \(option.rawValue) is \(text); allowed: at most setting "
                + "\(limit.rawValue), which is \(limitText)"
        }
    }

    private var example: String { "memory-limit: 512MiB" }

    private func place(_ file: String, _ line: Int?) -> String {
        SettingSource.file(name: file, line: line).text(for: .config)
    }
}

/// Everything that is wrong with the settings a node was given; at least one fault.
package struct ConfigurationErrors: Error, Hashable {
    package let first: ConfigurationError
    package let others: [ConfigurationError]

    init(_ first: ConfigurationError, _ others: [ConfigurationError] = []) {
        self.first = first
        self.others = others
    }

    /// Nil if there are none.
    init?(_ faults: [ConfigurationError]) {
        guard let first = faults.first else { return nil }
        self.init(first, Array(faults.dropFirst()))
    }

    /// One line each, in the order of the table; faults of the file as a whole come first.
    package var lines: [String] { ([first] + others).map(\.description) }
}
