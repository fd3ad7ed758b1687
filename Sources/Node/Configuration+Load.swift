import FoundationEssentials
import Telemetry

extension Configuration {
    /// Resolves `flags` with this process's environment and the file that either of them names.
    package static func load(flags: [String: [String]]) throws(ConfigurationError) -> Configuration
    {
        let environment = ProcessInfo.processInfo.environment
        let named = flags[SettingName.config.rawValue]?.last
        let path = named ?? environment[SettingName.config.environmentName] ?? ""
        let file: (name: String, text: String)? = path.isEmpty ? nil : (path, try read(path))
        return try resolve(flags: flags, environment: environment, file: file)
    }

    private static func read(_ path: String) throws(ConfigurationError) -> String {
        let bytes: Data
        do {
            bytes = try Data(contentsOf: URL(filePath: path))
        } catch {
            throw .unreadableFile(path, reason: reason(error))
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw .unreadableFile(path, reason: "it is not UTF-8")
        }
        return text
    }

    private static func reason(_ error: any Error) -> String {
        switch (error as? CocoaError)?.code {
        case .fileReadNoSuchFile?, .fileNoSuchFile?: "there is no such file"
        case .fileReadNoPermission?: "permission is denied"
        default: "it is not a readable file"
        }
    }
}
