import Admin
package import Ground
import HTTPRules
package import Telemetry

/// A fault in the settings that prevents the start, or a reload; nothing has been opened or changed
/// yet.
package enum ConfigurationError: Error, Hashable {
    /// The value of a setting is invalid.
    case invalidSetting(SettingError)
    /// A setting of a site or of images is invalid.
    case invalidSite(SiteFault)
    /// A file that a setting names cannot be used; `allowed` says what it may hold.
    case unusableFile(Setting, file: String, reason: String, allowed: String)
    /// A file with the issuers for a site's origin cannot be used.
    case siteTLS(SitePattern, SiteOption, file: String, reason: String)
    /// A file with the value of a request field cannot be used; the first text names the site or
    /// the images whose option it is.
    case fieldFile(String, name: String, file: String, reason: String)
    /// A site configures trust over TLS, but its origin is reached without TLS.
    case unusedSiteTrust(SitePattern, SiteOption, from: SettingSource)
    /// The numbers of certificates and keys differ.
    case unpairedKeys(certificates: Int, keys: Int)
    /// The change would turn TLS on or off in a running node.
    case tlsToggled(off: Bool)
    /// The setting has no meaning without TLS.
    case requiresTLS(Setting, from: SettingSource)
    /// The admin port is beyond loopback and requires no authentication.
    case unprotectedAdminPort(listen: ListenAddress, from: SettingSource)
    /// The setting has no meaning without a cluster secret.
    case requiresClusterSecret(Setting, from: SettingSource)
    /// The change would make a running node join or leave its cluster.
    case clusterToggled(off: Bool)
    /// A key of the file is not a setting; `nearest` is one with a similar name.
    case unknownKey(String, file: String, line: Int?, nearest: Setting?)
    /// The file contains a setting that only a flag or a variable may give.
    case notAllowedInFile(Setting, file: String, line: Int?)
    /// The file is not a YAML mapping of keys to values.
    case malformedFile(String, line: Int?, reason: String)
    /// The file cannot be read.
    case unreadableFile(String, reason: String)
    /// A setting exceeds the limit that another one sets; both values are texts.
    case valueAboveLimit(
        Setting, String, from: SettingSource, limit: Setting, String,
        limitFrom: SettingSource)
    /// The disk limit is too small for the four segments that a disk cache needs.
    case diskTooSmall(String, from: SettingSource, neededBytes: UInt64)
    /// Two sites have the same host.
    case duplicateSite(SitePattern, from: SettingSource, and: SettingSource)
    /// The number of sites exceeds the maximum.
    case tooManySites(Int)
    /// A site requires signatures, and there are no signing keys.
    case missingSigningKeys(SitePattern, from: SettingSource)
    /// A setting of a site or of images exceeds one of the node; the first value names its subject,
    /// and the other texts are both values.
    case siteValueAboveLimit(String, SiteOption, String, limit: Setting, String)
    /// Clients beyond loopback are served, and no origins are configured.
    case missingOrigins(Setting, listen: ListenAddress, from: SettingSource)
}

extension ConfigurationError: CustomStringConvertible {
    /// The fault in one line for the operator, with control bytes escaped.
    package var description: String {
        switch self {
        case .invalidSetting(let error):
            return error.description
        case .invalidSite(let fault):
            return fault.description
        case .unusableFile(let name, let file, let reason, let allowed):
            return "setting \(name.name): \(file.quoted(limit: 4096)) cannot be used: "
                + "\(reason); allowed: \(allowed)"
        case .siteTLS(let pattern, let option, let file, let reason):
            return
                "site \(pattern): \(option.name): \(file.quoted(limit: 4096)) cannot be used: "
                + "\(reason); allowed: \(option.allowed)"
        case .fieldFile(let whose, let name, let file, let reason):
            return "\(whose): set-request-fields: "
                + "\(name): \(file.quoted(limit: 4096)) cannot be used: \(reason); "
                + "allowed: a file of 1 to 4096 bytes in one line"
        case .unusedSiteTrust(let pattern, let option, let source):
            return "site \(pattern) (from \(source.text)): \(option.name) has no "
                + "effect without TLS; allowed: with an origin that begins with https://"
        case .unpairedKeys(let certificates, let keys):
            return "setting tls-certificate is given \(certificates) times and setting tls-key "
                + "\(keys) times; allowed: a tls-key for each tls-certificate, in the same order"
        case .tlsToggled(let isOff):
            return "setting tls-certificate would turn TLS \(isOff ? "off" : "on") while the node "
                + "runs; allowed: other certificates; turn TLS \(isOff ? "off" : "on") at a restart"
        case .requiresTLS(let name, let source):
            return "setting \(name.name) (from \(source.text)) has no effect "
                + "without TLS; allowed: together with tls-certificate and tls-key"
        case .unprotectedAdminPort(let listen, let source):
            return
                "setting admin-listen (from \(source.text)): \(listen) is not "
                + "a loopback address, so anyone who can reach it could do everything; allowed: "
                + "a loopback address, or together with admin-token-file or client-ca"
        case .requiresClusterSecret(let name, let source):
            return "setting \(name.name) (from \(source.text)) has no effect "
                + "without a secret; allowed: together with cluster-secret-file"
        case .clusterToggled(let isOff):
            return "setting cluster-secret-file would turn the cluster \(isOff ? "off" : "on") "
                + "while the node runs; allowed: other secrets; turn it \(isOff ? "off" : "on") "
                + "at a restart"
        case .unknownKey(let key, let file, let line, let nearest):
            let hint = nearest.map { "; perhaps \($0.name)" } ?? ""
            return "\(key.quoted()) (from \(place(file, line))) is not a setting" + hint
        case .notAllowedInFile(let name, let file, let line):
            return
                "setting \(name.name) (from \(place(file, line))) cannot be given in a file; "
                + "allowed: flag \(name.flag) or environment \(name.environmentName)"
        case .malformedFile(let file, let line, let reason):
            return "\(place(file, line)): \(reason); allowed: one YAML mapping, e.g. \(example)"
        case .unreadableFile(let file, let reason):
            return "setting config: \(file.quoted(limit: 4096)) cannot be read: \(reason)"
        case .valueAboveLimit(
            let name, let text, let source, let limit, let limitText, let limitSource):
            return
                "setting \(name.name) (from \(source.text)): \(text) is too large; "
                + "allowed: at most setting \(limit.name), which is \(limitText) "
                + "(from \(limitSource.text))"
        case .diskTooSmall(let text, let source, let needed):
            return
                "setting disk-limit (from \(source.text)): \(text) is too small "
                + "for the four segments that a disk cache needs; allowed: at least \(needed)B, "
                + "e.g. --disk-limit 8MiB, or 0 for no disk cache"
        case .missingOrigins(let listener, let listen, let source):
            let name = Setting.origins.allowOrigin.setting
            let site = Setting.origins.site.setting
            return "setting \(name.name) or \(site.name) is required because setting "
                + "\(listener.name) (from \(source.text)) has \(listen), which is beyond loopback; "
                + "allowed: \(name.kind.allowed), e.g. \(name.flag) '*.example.com', "
                + "or \(site.flag) \(site.example)"
        case .duplicateSite(let pattern, let source, let other):
            return "site \(pattern) (from \(source.text)) is given twice "
                + "(also from \(other.text)); allowed: each Host once"
        case .tooManySites(let count):
            return "\(count) sites are given; allowed: at most \(ConfigurationValues.sitesMax)"
        case .missingSigningKeys(let pattern, let source):
            let keys = Setting.node.signingKeyFile.setting
            return "site \(pattern) (from \(source.text)): signed is on; "
                + "allowed: only with setting \(keys.name), "
                + "e.g. \(keys.flag) \(keys.example)"
        case .siteValueAboveLimit(let whose, let option, let text, let limit, let limitText):
            return "\(whose): \(option.name) is \(text); allowed: at most setting "
                + "\(limit.name), which is \(limitText)"
        }
    }

    /// An example of a line in a configuration file.
    private var example: String { "memory-limit: 512MiB" }

    /// Returns a position in a file as text.
    private func place(_ file: String, _ line: Int?) -> String {
        SettingSource.file(name: file, line: line).text
    }
}

/// All faults in the settings of a node; at least one.
package struct ConfigurationErrors: Error, Hashable {
    /// The first fault.
    package let first: ConfigurationError
    /// The other faults.
    package let others: [ConfigurationError]

    /// Creates a list from its first fault and the others.
    init(_ first: ConfigurationError, _ others: [ConfigurationError] = []) {
        self.first = first
        self.others = others
    }

    /// Creates a list of `faults`; `nil` if there are none.
    init?(_ faults: [ConfigurationError]) {
        guard let first = faults.first else { return nil }
        self.init(first, Array(faults.dropFirst()))
    }

    /// The faults in the order in which they were found, one line each; those of the file's keys
    /// and sites precede those of the node's settings.
    package var lines: [String] { ([first] + others).map(\.description) }
}
