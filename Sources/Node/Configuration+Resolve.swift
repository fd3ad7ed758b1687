import Telemetry

extension Configuration {
    /// Flags beat environment beats file beats the table's default, setting by setting.
    ///
    /// A list is taken whole from the first that gives it. An empty variable counts as not given.
    /// - Parameters:
    ///   - flags: the texts of each flag in the order given, by the setting's name.
    ///   - environment: the whole environment of the process.
    ///   - file: the YAML file, its name as the operator wrote it.
    /// - Returns: settings that fit each other.
    /// - Throws: the first fault; see ``check(flags:environment:file:)``.
    package static func resolve(
        flags: [String: [String]], environment: [String: String],
        file: (name: String, text: String)?
    ) throws(ConfigurationError) -> Configuration {
        do throws(ConfigurationFaults) {
            return try check(flags: flags, environment: environment, file: file)
        } catch {
            throw error.first
        }
    }

    /// The same, but for what it throws: every fault.
    ///
    /// A file that cannot be read as one mapping is the only fault that is named, and settings are
    /// held against each other only when each of them has a value.
    package static func check(
        flags: [String: [String]], environment: [String: String],
        file: (name: String, text: String)?
    ) throws(ConfigurationFaults) -> Configuration {
        let layers = ConfigurationLayers(
            flags: flags, environment: environment, file: try file.map(read))
        var faults = layers.file?.faults ?? []
        var given = ConfigurationValues()
        given.siteBlocks = layers.file?.sites ?? []
        for setting in Setting.table {
            do throws(SettingError) {
                let (parsed, source) = try layers.values(of: setting)
                given.set(setting.name, parsed, from: source)
            } catch {
                faults.append(.setting(error))
            }
        }
        if let faults = ConfigurationFaults(faults) { throw faults }
        return try Configuration(settling: given, warnings: layers.warnings)
    }

    /// Settings as they were given, held against each other.
    init(
        settling given: ConfigurationValues, warnings: [String]
    ) throws(ConfigurationFaults) {
        var values = given
        if let faults = ConfigurationFaults(values.settle()) { throw faults }
        self.init(values, given: given, warnings: warnings)
    }

    /// Where a node with these settings listens in clear text, the admin port first; whatever is
    /// wrong with other settings.
    static func plainAddresses(
        flags: [String: [String]], environment: [String: String],
        file: (name: String, text: String)?
    ) throws(ConfigurationFaults) -> [ListenAddress] {
        let values = try values(
            of: [.adminListen, .clientCA],
            ConfigurationLayers(
                flags: flags, environment: environment, file: try file.map(read)))
        let admin = values.path(.clientCA) == nil ? values.addresses(.adminListen) : []
        return admin + (try clientAddresses(flags: flags, environment: environment, file: file))
    }

    /// Where it serves clients in clear text.
    static func clientAddresses(
        flags: [String: [String]], environment: [String: String],
        file: (name: String, text: String)?
    ) throws(ConfigurationFaults) -> [ListenAddress] {
        let values = try values(
            of: [.listen, .plainListen, .tlsCertificate],
            ConfigurationLayers(
                flags: flags, environment: environment, file: try file.map(read)))
        let hasTLS = !values.paths(.tlsCertificate).isEmpty
        return values.addresses(.plainListen) + (hasTLS ? [] : values.addresses(.listen))
    }

    /// The file of operators' tokens.
    static func adminTokenFile(
        flags: [String: [String]], environment: [String: String],
        file: (name: String, text: String)?
    ) throws(ConfigurationFaults) -> String? {
        try values(
            of: [.adminTokenFile],
            ConfigurationLayers(
                flags: flags, environment: environment, file: try file.map(read))
        ).path(.adminTokenFile)
    }

    /// Where operators ask a node with these settings; whatever is wrong with other settings.
    static func operatorPlace(
        flags: [String: [String]], environment: [String: String],
        file: (name: String, text: String)?
    ) throws(ConfigurationFaults) -> OperatorPlace {
        let values = try values(
            of: [.adminListen, .adminTokenFile, .clientCA],
            ConfigurationLayers(
                flags: flags, environment: environment, file: try file.map(read)))
        guard let address = values.addresses(.adminListen).first else { return .off }
        if values.path(.clientCA) != nil { return .wantsCertificate }
        return address.port == 0
            ? .chosenByKernel : .address(address, tokenFile: values.path(.adminTokenFile))
    }

    private static func values(
        of names: [SettingName], _ layers: ConfigurationLayers
    ) throws(ConfigurationFaults) -> ConfigurationValues {
        var values = ConfigurationValues()
        for name in names {
            do throws(SettingError) {
                let (parsed, source) = try layers.values(of: name.setting)
                values.set(name, parsed, from: source)
            } catch {
                throw ConfigurationFaults(.setting(error))
            }
        }
        return values
    }

    private static func read(
        _ file: (name: String, text: String)
    ) throws(ConfigurationFaults) -> ConfigurationFile {
        do throws(ConfigurationError) {
            return try ConfigurationFile(name: file.name, text: file.text)
        } catch {
            throw ConfigurationFaults(error)
        }
    }
}

/// The texts that each source gives, before one of them is chosen.
private struct ConfigurationLayers {
    let flags: [String: [String]]
    let environment: [String: String]
    let file: ConfigurationFile?

    /// The values of a setting and the source that gave them.
    func values(
        of setting: Setting
    ) throws(SettingError) -> (values: [SettingValue], source: SettingSource) {
        let (texts, source) = try texts(of: setting)
        if !setting.isList, texts.count > 1 {
            throw SettingError(
                setting: setting, source: source, text: "", problem: .severalValues(texts.count))
        }
        if texts.isEmpty, !setting.defaults.isEmpty {
            throw SettingError(setting: setting, source: source, text: "", problem: .noValue)
        }
        var values: [SettingValue] = []
        for (text, source) in texts {
            values.append(try setting.parse(text, from: source))
        }
        return (values, source)
    }

    private typealias Texts = (texts: [(String, SettingSource)], source: SettingSource)

    private func texts(of setting: Setting) throws(SettingError) -> Texts {
        if let texts = flags[setting.name.rawValue], !texts.isEmpty {
            return (texts.map { ($0, .flag) }, .flag)
        }
        let words = words(of: setting)
        if !words.isEmpty { return (words.map { ($0, .environment) }, .environment) }
        if let file, let given = file.settings[setting.name] {
            return try texts(of: setting, given, in: file.name)
        }
        return (setting.defaults.map { ($0, .builtIn) }, .builtIn)
    }

    private func words(of setting: Setting) -> [String] {
        guard let text = environment[setting.name.environmentName], !text.isEmpty else { return [] }
        guard setting.isList else { return [text] }
        return text.split(whereSeparator: \.isWhitespace).map(String.init)
    }

    private func texts(
        of setting: Setting, _ given: ConfigurationFile.Given, in file: String
    ) throws(SettingError) -> Texts {
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

    /// Variables that look like settings and are none; Kubernetes injects such.
    var warnings: [String] {
        let others = [OperatorOptions.nodeVariable, OperatorOptions.tokenVariable]
        let known = Set(SettingName.allCases.map(\.environmentName) + others)
        let unknown = environment.keys.filter {
            $0.hasPrefix(SettingName.environmentPrefix) && !known.contains($0)
        }
        return unknown.sorted().map { name in
            let nearest = SettingName.nearest(toVariable: name)
            let hint = nearest.map { "; perhaps \($0.environmentName)" } ?? ""
            return "environment \(name.quoted()) is not a setting" + hint
        }
    }
}
