import Telemetry
import Wire

extension Configuration {
    /// This program's version.
    package static let version = "0.1.0"

    /// This program and the libraries it is linked with, as they call themselves at run time: like
    /// `nuthatch 0.1.0 (OpenSSL 3.0.19 27 Jan 2026, nghttp2 1.52.0)`.
    package static var versionText: String {
        "nuthatch \(version) (\(LibraryVersions.openSSL), \(LibraryVersions.ngHTTP2))"
    }

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
