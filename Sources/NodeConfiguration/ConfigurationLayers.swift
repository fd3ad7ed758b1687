import Admin
import Telemetry

/// The texts of the settings by source, before one source is chosen for each.
struct ConfigurationLayers {
    /// The texts of each flag in the order given, by the setting's name.
    let flags: [String: [String]]
    /// The environment of the process.
    let environment: [String: String]
    /// The parsed configuration file; `nil` for none.
    let file: ConfigurationFile?

    /// Creates the layers and parses the file.
    ///
    /// - Throws: the fault of a file that cannot be parsed as a whole.
    init(
        flags: [String: [String]], environment: [String: String],
        file: (name: String, text: String)?
    ) throws(ConfigurationErrors) {
        self.flags = flags
        self.environment = environment
        self.file = try file.map(Self.read)
    }

    /// Parses the file.
    private static func read(
        _ file: (name: String, text: String)
    ) throws(ConfigurationErrors) -> ConfigurationFile {
        do throws(ConfigurationError) {
            return try ConfigurationFile(name: file.name, text: file.text)
        } catch {
            throw ConfigurationErrors(error)
        }
    }

    /// Returns the value of a setting from the first source that gives it: flags, environment, file
    /// or default.
    func entry(of key: some AnySettingKey) throws(SettingError) -> SettingEntry {
        let (texts, source) = try texts(of: key.setting)
        return try key.entry(of: texts, from: source)
    }

    /// Texts with the source of each, and the source of the whole.
    private typealias SourcedTexts = (texts: [SettingText], source: SettingSource)

    /// Returns the texts of a setting from the first source that has any: flags, environment, file
    /// or default.
    private func texts(of setting: Setting) throws(SettingError) -> SourcedTexts {
        if let texts = flags[setting.name], !texts.isEmpty {
            return (texts.map { ($0, .flag(setting.flag)) }, .flag(setting.flag))
        }
        let words = environmentTexts(of: setting)
        if !words.isEmpty {
            let source = SettingSource.environment(setting.environmentName)
            return (words.map { ($0, source) }, source)
        }
        if let file, let given = file.settings[setting] {
            return try texts(of: setting, given, in: file.name)
        }
        return (setting.defaults.map { ($0, .builtIn) }, .builtIn)
    }

    /// Returns the texts of a setting's variable; a list is separated by white space.
    private func environmentTexts(of setting: Setting) -> [String] {
        guard let text = environment[setting.environmentName], !text.isEmpty else { return [] }
        guard setting.isList else { return [text] }
        return text.split(whereSeparator: \.isWhitespace).map(String.init)
    }

    /// Returns the texts of a setting in the file.
    private func texts(
        of setting: Setting, _ given: ConfigurationFile.FileValue, in file: String
    ) throws(SettingError) -> SourcedTexts {
        switch given {
        case .scalar(let text):
            let source = SettingSource.file(name: file, line: text.line)
            return ([(text.text, source)], source)
        case .list(let texts, let line):
            return (
                texts.map { ($0.text, .file(name: file, line: $0.line)) },
                .file(name: file, line: line)
            )
        case .nested(let line):
            throw SettingError(
                setting: setting, source: .file(name: file, line: line), text: "",
                problem: .nested)
        }
    }

    /// The warnings about variables with the prefix `NUTHATCH_` that are not settings, such as
    /// those that Kubernetes injects for a service.
    var warnings: [String] {
        let others = ClientEnvironmentVariable.allCases.map(\.rawValue)
        let known = Set(Setting.table.map(\.environmentName) + others)
        let unknown = environment.keys.filter {
            $0.hasPrefix(Setting.environmentPrefix) && !known.contains($0)
        }
        return unknown.sorted().map { name in
            let nearest = Setting.nearest(toVariable: name)
            let hint = nearest.map { "; perhaps \($0.environmentName)" } ?? ""
            return "environment \(name.quoted()) is not a setting" + hint
        }
    }
}

extension ConfigurationLayers {
    /// Returns the addresses and token files of the node that would run with these settings, for
    /// client commands.
    ///
    /// - Parameter hasAdminFlag: true if a flag sets `admin-listen`.
    /// - Returns: the parts, each with its own fault.
    func ownNode(hasAdminFlag: Bool) -> LocalNode {
        LocalNode(
            hasAdminFlag: hasAdminFlag, adminPort: captured(adminPort),
            adminTokenFile: captured(adminTokenFile), clientAddress: captured(clientAddress),
            secureAddress: captured(secureAddress), healthAddress: captured(healthAddress))
    }

    /// Returns the result of `read`, with the first fault as its error.
    private func captured<Value>(
        _ read: () throws(ConfigurationErrors) -> Value
    ) -> Result<Value, LocalNode.SettingError> {
        do throws(ConfigurationErrors) {
            return .success(try read())
        } catch {
            return .failure(LocalNode.SettingError(error.first.description))
        }
    }

    /// Returns the address of the admin port, or the reason why a command cannot use it.
    private func adminPort() throws(ConfigurationErrors) -> LocalNode.AdminPort {
        let address = try value(of: Setting.node.adminListen)
        let tokenFile = try value(of: Setting.node.adminTokenFile)
        let issuers = try value(of: Setting.tls.clientCA)
        guard let address else { return .disabled }
        if issuers != nil { return .requiresCertificate }
        return address.port == 0 ? .ephemeral : .address(address, tokenFile: tokenFile)
    }

    /// Returns the path of the file with the operators' tokens.
    private func adminTokenFile() throws(ConfigurationErrors) -> String? {
        try value(of: Setting.node.adminTokenFile)
    }

    /// Returns the first clear-text address for clients with a known port; `nil` if there is none.
    private func clientAddress() throws(ConfigurationErrors) -> ListenAddress? {
        try clientAddresses().first { $0.port != 0 }
    }

    /// Returns the first address with a known port on which clients are served over TLS; `nil` if
    /// there is none.
    private func secureAddress() throws(ConfigurationErrors) -> ListenAddress? {
        let isSecure = try !value(of: Setting.tls.tlsCertificate).isEmpty
        return isSecure ? try value(of: Setting.node.listen).first { $0.port != 0 } : nil
    }

    /// Returns the first clear-text address with a known port that serves health checks, the admin
    /// port before those for clients; `nil` if there is none.
    private func healthAddress() throws(ConfigurationErrors) -> ListenAddress? {
        let address = try value(of: Setting.node.adminListen)
        let admin = try value(of: Setting.tls.clientCA) == nil ? [address].compactMap(\.self) : []
        return (admin + (try clientAddresses())).first { $0.port != 0 }
    }

    /// Returns the addresses on which clients are served in clear text: those of `plain-listen`,
    /// and without TLS those of `listen`.
    private func clientAddresses() throws(ConfigurationErrors) -> [ListenAddress] {
        let listen = try value(of: Setting.node.listen)
        let plain = try value(of: Setting.tls.plainListen)
        return plain + (try value(of: Setting.tls.tlsCertificate).isEmpty ? listen : [])
    }

    /// Returns the value of one setting.
    private func value<Value>(
        of key: SettingKey<Value>
    ) throws(ConfigurationErrors) -> Value {
        do throws(SettingError) {
            return key.value(of: try entry(of: key))
        } catch {
            throw ConfigurationErrors(.invalidSetting(error))
        }
    }
}
