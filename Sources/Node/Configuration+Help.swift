import Telemetry

extension Configuration {
    /// This program's version.
    package static let version = "0.1.0"

    /// What `--help` says of the setting `name`, and what stands for its value in the synopsis.
    ///
    /// The name must be one of the table's.
    package static func help(for name: String) -> (text: String, placeholder: String) {
        guard let setting = SettingName(rawValue: name)?.setting else {
            preconditionFailure("\(name) is not a setting")
        }
        return (setting.help, setting.kind.placeholder)
    }
}
