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

    /// What the values of a setting are, as far as a shell can offer them.
    package enum Completion: Hashable, Sendable {
        case file
        case directory
        case choices([String])
    }

    /// What a shell can offer for the setting `name`, which must be one of the table's; nil for
    /// nothing.
    package static func completion(for name: String) -> Completion? {
        guard let setting = SettingName(rawValue: name)?.setting else {
            preconditionFailure("\(name) is not a setting")
        }
        switch setting.kind {
        case .path: return setting.name == .cacheDir ? .directory : .file
        case .choice(let choices): return .choices(choices)
        default: return nil
        }
    }
}
