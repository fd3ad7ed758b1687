package import Admin
package import HTTPRules
import Telemetry
package import Wire

/// All settings of a node, resolved, checked and typed, under the names of their declarations, and
/// the contents of the files that they name.
package struct Configuration: Sendable, SettingReader {
    /// The format of the access log.
    package enum AccessLogFormat: String, CaseIterable, Sendable {
        case off
        case combined
        case json
    }

    /// The format of the log on standard error.
    package enum LogFormat: String, CaseIterable, Sendable {
        /// Lines for people.
        case text
        case logfmt
        case json
    }

    /// The party that resolves origins' names when a forward proxy is used.
    package enum ProxyNameResolution: String, CaseIterable, Sendable {
        case node
        case proxy
    }

    /// The sites that are served.
    package private(set) var sites: SiteTable
    /// The digests of the operators' tokens and their roles, as of the last load; empty without a
    /// file.
    package var adminGrants: [AdminAccessPolicy.Grant] = []
    /// The token that lets a request ask for cache decisions, as of the last load, without the end
    /// of the line; `nil` without a file.
    package var decisionToken: [UInt8]?
    /// The keys of signed URLs, as of the last load; empty without a file.
    package var signingKeys: [SigningKey] = []
    /// The digests of the tokens for PURGE, as of the last load; empty without a file.
    package var purgeTokens: [TokenDigest] = []
    /// The parsed certificates, keys and issuers, as of the last load.
    package var tlsMaterial = TLSMaterial()
    /// The context for connections with peers, from the secrets as of the last load; `nil` without
    /// a file.
    package var clusterSecrets: TLSPeerContext?
    /// The warnings for the operator, which do not prevent the start; one line each.
    package var warnings: [String]

    /// The values in force.
    private(set) var values: ConfigurationValues
    /// The values as given, before they were adjusted to each other.
    private(set) var declaredValues: ConfigurationValues
}

extension Configuration {
    /// Reads the files that hold values of request fields of sites and images, and updates
    /// ``sites``.
    mutating func readFieldFiles() throws(ConfigurationError) {
        try declaredValues.readFieldFiles()
        (values.siteBlocks, values.images) = (declaredValues.siteBlocks, declaredValues.images)
        sites = SiteTable(values.sites.map(\.site))
    }

    /// Creates a configuration from reconciled values.
    ///
    /// - Parameters:
    ///   - values: the values after reconciliation.
    ///   - declared: the values as given.
    ///   - warnings: warnings in addition to those of the values.
    init(_ values: ConfigurationValues, declared: ConfigurationValues, warnings: [String]) {
        self.values = values
        self.declaredValues = declared
        sites = SiteTable(values.sites.map(\.site))
        self.warnings = warnings + values.warnings
    }
}

extension Configuration {
    /// Returns the value of a setting in force.
    package subscript<Value>(key: SettingKey<Value>) -> Value { values[key] }

    /// The settings of images that are requested by URL.
    package var images: ImageBlock { values.images }

    /// The bytes that may wait to be written to disk; at most a quarter of the memory limit.
    package var diskQueueBytesMax: Int { min(self.diskQueueLimit, self.memoryLimit / 4) }
}

extension Configuration {
    /// Resolves and checks all settings, without reading the files that they name; for each, flags
    /// take precedence over the environment, the file and the default.
    ///
    /// A list is taken whole from the first source that gives it. An empty variable counts as not
    /// given.
    ///
    /// - Parameters:
    ///   - flags: the texts of each flag in the order given, by the setting's name.
    ///   - environment: the whole environment of the process.
    ///   - file: the YAML file, its name as the operator wrote it; `nil` for none.
    ///
    /// - Returns: settings that are consistent with each other.
    ///
    /// - Throws: all faults. If the file cannot be read as one mapping, only that is reported.
    ///   Settings are checked against each other only if each of them has a value.
    package static func check(
        flags: [String: [String]], environment: [String: String],
        file: (name: String, text: String)?
    ) throws(ConfigurationErrors) -> Configuration {
        let layers = try ConfigurationLayers(flags: flags, environment: environment, file: file)
        var faults = layers.file?.errors ?? []
        var given = ConfigurationValues()
        given.siteBlocks = layers.file?.sites ?? []
        given.images = layers.file?.images ?? ImageBlock()
        for key in Setting.keys {
            do throws(SettingError) {
                given.set(key.setting, try layers.entry(of: key))
            } catch {
                faults.append(.invalidSetting(error))
            }
        }
        if let faults = ConfigurationErrors(faults) { throw faults }
        return try Configuration(reconciling: given, warnings: layers.warnings)
    }

    /// Checks the given settings against each other and creates a configuration from them.
    init(
        reconciling given: ConfigurationValues, warnings: [String]
    ) throws(ConfigurationErrors) {
        var values = given
        if let faults = ConfigurationErrors(values.reconcile()) { throw faults }
        self.init(values, declared: given, warnings: warnings)
    }
}
