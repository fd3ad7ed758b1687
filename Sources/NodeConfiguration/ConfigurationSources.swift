package import Admin
import FoundationEssentials
import Glibc
import HTTPRules
import Telemetry
import Wire

/// The sources of a node's settings, fixed at the start; only the contents of files may change
/// later.
package struct ConfigurationSources: Sendable {
    private let flags: [String: [String]]
    private let environment: [String: String]

    /// Creates sources from flags and this process's environment.
    ///
    /// - Parameter flags: the texts of each flag in the order given, by the setting's name.
    package init(flags: [String: [String]]) {
        self.init(flags: flags, environment: ProcessInfo.processInfo.environment)
    }

    /// Creates sources from flags and an environment.
    ///
    /// - Parameters:
    ///   - flags: the texts of each flag in the order given, by the setting's name.
    ///   - environment: the variables in place of the process's own.
    package init(flags: [String: [String]], environment: [String: String]) {
        self.flags = flags
        self.environment = environment
    }

    /// Reads the configuration file, if a flag or a variable names one, and resolves all settings
    /// and the files that they name.
    ///
    /// - Throws: all faults of the settings; if there are none, the first fault of a file that they
    ///   name.
    package func load() throws(ConfigurationErrors) -> Configuration {
        var configuration = try Configuration.check(
            flags: flags, environment: environment, file: try file())
        do throws(ConfigurationError) {
            try configuration.readFieldFiles()
            if let path = configuration.decisionTokenFile {
                configuration.decisionToken = try Self.decisionToken(path)
            }
            if let path = configuration.signingKeyFile {
                configuration.signingKeys = try Self.signingKeys(path)
            }
            if let path = configuration.purgeTokenFile {
                configuration.purgeTokens = try Self.purgeTokens(path)
            }
            if let path = configuration.adminTokenFile {
                configuration.adminGrants = try Self.adminTokens(path).map {
                    AdminAccessPolicy.Grant($0.role, TokenDigest(ofToken: $0.token))
                }
            }
            if let path = configuration.clusterSecretFile {
                configuration.clusterSecrets = try ClusterSecrets.read(path)
            }
        } catch {
            throw ConfigurationErrors(error)
        }
        do throws(ConfigurationError) {
            configuration.tlsMaterial = try TLSMaterial(of: configuration)
        } catch {
            throw ConfigurationErrors(error)
        }
        configuration.warnings += configuration.exposureWarnings
        return configuration
    }

    /// Returns the keys of signed URLs in a file.
    static func signingKeys(_ path: String) throws(ConfigurationError) -> [SigningKey] {
        let file = SettingFile(Setting.node.signingKeyFile, path, SigningKeyFault.allowed)
        let bytes = try file.read()
        do throws(SigningKeyFault) {
            return try SigningKey.keys(of: bytes)
        } catch {
            throw file.error(error.message)
        }
    }

    /// Returns the digests of the tokens for PURGE in a file.
    private static func purgeTokens(_ path: String) throws(ConfigurationError) -> [TokenDigest] {
        let file = SettingFile(Setting.clients.purgeTokenFile, path, TokenFile.allowed)
        let bytes = try file.read()
        do throws(TokenFileFault) {
            return try TokenFile.tokens(of: bytes).map(TokenDigest.init(ofToken:))
        } catch {
            throw file.error(error.message)
        }
    }

    /// Returns the operators' tokens in a file.
    private static func adminTokens(
        _ path: String
    ) throws(ConfigurationError) -> [AdminTokenFile.Entry] {
        let file = SettingFile(Setting.node.adminTokenFile, path, AdminTokenFile.allowedFormat)
        let bytes = try file.read()
        do throws(AdminTokenFile.ParseError) {
            return try AdminTokenFile.entries(of: bytes)
        } catch {
            throw file.error(error.message)
        }
    }

    /// Returns the decision token in a file.
    private static func decisionToken(_ path: String) throws(ConfigurationError) -> [UInt8] {
        let file = SettingFile(
            Setting.node.decisionTokenFile, path,
            "a file of 16 to 256 visible ASCII characters in one line")
        let bytes = try file.read()
        let token = Array(bytes.prefix { $0 != 0x0A && $0 != 0x0D })
        guard bytes.dropFirst(token.count).allSatisfy({ $0 == 0x0A || $0 == 0x0D }),
            token.allSatisfy({ (0x21...0x7E).contains($0) })
        else { throw file.error("it contains more than one word") }
        guard (16...256).contains(token.count) else {
            throw file.error("it contains \(token.count) characters")
        }
        return token
    }

    /// The addresses and token files of the node that would run with these settings, for client
    /// commands.
    package var ownNode: LocalNode {
        let hasAdminFlag = flags[Setting.node.adminListen.setting.name]?.isEmpty == false
        do throws(ConfigurationErrors) {
            let layers = try ConfigurationLayers(
                flags: flags, environment: environment, file: try file())
            return layers.ownNode(hasAdminFlag: hasAdminFlag)
        } catch {
            return LocalNode(
                hasAdminFlag: hasAdminFlag, error: LocalNode.SettingError(error.first.description))
        }
    }

    /// The path of the configuration file as the operator wrote it; `nil` if none is named.
    package var path: String? {
        let named = flags[Setting.node.config.setting.name]?.last
        let path = named ?? environment[Setting.node.config.setting.environmentName] ?? ""
        return path.isEmpty ? nil : path
    }

    /// Reads the configuration file; returns `nil` if none is named.
    private func file() throws(ConfigurationErrors) -> (name: String, text: String)? {
        guard let path else { return nil }
        do throws(ConfigurationError) {
            return (path, try Self.text(of: try Self.read(path), in: path))
        } catch {
            throw ConfigurationErrors(error)
        }
    }

    /// Returns a file's bytes as text.
    ///
    /// - Throws: `unreadableFile` if they are not UTF-8.
    package static func text(
        of bytes: [UInt8], in file: String
    ) throws(ConfigurationError) -> String {
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw .unreadableFile(file, reason: "it is not UTF-8")
        }
        return text
    }

    /// Returns the contents of a regular file of at most ``YAMLPrecheck/bytesMax`` bytes.
    ///
    /// Other files are refused: a pipe gives its bytes only once, and files are read again at every
    /// SIGHUP. `fault` makes the error from the reason; `nil` for `unreadableFile`.
    static func read(
        _ path: String, orThrow fault: ((_ reason: String) -> ConfigurationError)? = nil
    ) throws(ConfigurationError) -> [UInt8] {
        func failure(_ reason: String = Self.reason(errno)) -> ConfigurationError {
            fault?(reason) ?? .unreadableFile(path, reason: reason)
        }
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw failure() }
        defer { close(descriptor) }
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else { throw failure() }
        guard status.st_mode & S_IFMT == S_IFREG else { throw failure("it is not a regular file") }
        // One byte more than is accepted, which reveals a larger file.
        var bytes = [UInt8](repeating: 0, count: YAMLPrecheck.bytesMax + 1)
        var count = 0
        while count < bytes.count {
            let got = unsafe bytes.withUnsafeMutableBytes { room in
                let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: room[count...])
                return unsafe Glibc.read(descriptor, rest.baseAddress, rest.count)
            }
            if got < 0, errno == EINTR { continue }
            guard got >= 0 else { throw failure() }
            guard got > 0 else { break }
            count += got
        }
        guard count <= YAMLPrecheck.bytesMax else { throw failure(YAMLPrecheck.tooLarge) }
        return Array(bytes[..<count])
    }

    /// Returns the reason for a system error.
    private static func reason(_ number: CInt) -> String {
        switch number {
        case ENOENT, ENOTDIR: "the file does not exist"
        case EACCES, EPERM: "permission is denied"
        default: unsafe String(cString: strerror(number))
        }
    }
}

/// A file that a setting names, and what it may hold.
struct SettingFile {
    private let setting: Setting
    private let path: String
    private let allowed: String

    /// Creates a file from the setting's key, the path, and the description of what is allowed.
    init(_ key: SettingKey<some Sendable>, _ path: String, _ allowed: String) {
        (setting, self.path, self.allowed) = (key.setting, path, allowed)
    }

    /// Returns the contents of the file.
    func read() throws(ConfigurationError) -> [UInt8] {
        try ConfigurationSources.read(path, orThrow: error)
    }

    /// Returns the error for a reason why the file cannot be used.
    func error(_ reason: String) -> ConfigurationError {
        .unusableFile(setting, file: path, reason: reason, allowed: allowed)
    }
}
