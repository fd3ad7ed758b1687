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
    /// - Throws: every fault. A file that cannot be read as one mapping is the only fault that is
    ///   named, and settings are held against each other only when each of them has a value.
    package static func check(
        flags: [String: [String]], environment: [String: String],
        file: (name: String, text: String)?
    ) throws(ConfigurationErrors) -> Configuration {
        let layers = try ConfigurationLayers(flags: flags, environment: environment, file: file)
        var faults = layers.file?.errors ?? []
        var given = ConfigurationValues()
        given.siteBlocks = layers.file?.sites ?? []
        given.images = layers.file?.images ?? ImageBlock()
        for setting in Setting.table {
            do throws(SettingError) {
                let (parsed, source) = try layers.values(of: setting)
                given.set(setting.name, parsed, from: source)
            } catch {
                faults.append(.invalidSetting(error))
            }
        }
        if let faults = ConfigurationErrors(faults) { throw faults }
        return try Configuration(reconciling: given, warnings: layers.warnings)
    }

    /// Settings as they were given, held against each other.
    init(
        reconciling given: ConfigurationValues, warnings: [String]
    ) throws(ConfigurationErrors) {
        var values = given
        if let faults = ConfigurationErrors(values.reconcile()) { throw faults }
        self.init(values, declared: given, warnings: warnings)
    }
}
