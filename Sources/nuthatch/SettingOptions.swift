import ArgumentParser
import Foundation
import Node

/// The flags of all settings, for every command that uses a node's settings.
struct SettingOptions: ParsableArguments {
    @OptionGroup(title: "Node")
    var node: NodeOptions

    @OptionGroup(title: "Memory")
    var memory: MemoryOptions

    @OptionGroup(title: "Disk")
    var disk: DiskOptions

    @OptionGroup(title: "Origins")
    var origins: OriginOptions

    @OptionGroup(title: "Clients")
    var clients: ClientOptions

    @OptionGroup(title: "TLS")
    var tls: TLSOptions

    @OptionGroup(title: "Cluster")
    var cluster: ClusterOptions

    /// The sources of the settings: these flags and this process's environment.
    var sources: ConfigurationSources {
        let given = [
            node.flags, memory.flags, disk.flags, origins.flags, clients.flags, tls.flags,
            cluster.flags,
        ]
        return ConfigurationSources(
            flags: given.joined().reduce(into: [:]) { $0[$1.0] = $1.1 })
    }

    /// Resolves and checks all settings, and prints the faults.
    ///
    /// - Throws: the exit code of sysexits(3) if there are any; an invalid command line has ended
    ///   with `EX_USAGE` before.
    func load() throws(ExitCode) -> Configuration {
        do throws(ConfigurationErrors) {
            return try sources.load()
        } catch {
            for line in error.lines { printError(line) }
            throw ExitCode(EX_CONFIG)
        }
    }
}

/// Writes a line to standard error.
func printError(_ line: String) {
    FileHandle.standardError.write(Data("nuthatch: \(line)\n".utf8))
}

/// The flags under “Node” of the table of settings.
struct NodeOptions: ParsableArguments {
    @Option(help: help("config"), completion: completion("config"))
    var config: String?

    @Option(help: help("listen"))
    var listen: [String] = []

    @Option(help: help("admin-listen"))
    var adminListen: String?

    @Option(help: help("admin-token-file"), completion: completion("admin-token-file"))
    var adminTokenFile: String?

    @Option(help: help("loops"))
    var loops: String?

    @Option(help: help("access-log"), completion: completion("access-log"))
    var accessLog: String?

    @Option(help: help("log-level"), completion: completion("log-level"))
    var logLevel: String?

    @Option(help: help("log-format"), completion: completion("log-format"))
    var logFormat: String?

    @Option(help: help("decision-token-file"), completion: completion("decision-token-file"))
    var decisionTokenFile: String?

    @Option(help: help("signing-key-file"), completion: completion("signing-key-file"))
    var signingKeyFile: String?

    @Option(help: help("drain-timeout"))
    var drainTimeout: String?

    /// The texts given for each setting; empty for a setting that is not given.
    var flags: [(String, [String])] {
        [
            ("config", config.texts),
            ("listen", listen),
            ("admin-listen", adminListen.texts),
            ("admin-token-file", adminTokenFile.texts),
            ("loops", loops.texts),
            ("access-log", accessLog.texts),
            ("log-level", logLevel.texts),
            ("log-format", logFormat.texts),
            ("decision-token-file", decisionTokenFile.texts),
            ("signing-key-file", signingKeyFile.texts),
            ("drain-timeout", drainTimeout.texts),
        ]
    }
}

/// The flags under “Memory” of the table of settings.
struct MemoryOptions: ParsableArguments {
    @Option(help: help("memory-limit"))
    var memoryLimit: String?

    @Option(help: help("memory-entries"))
    var memoryEntries: String?

    @Option(help: help("memory-pressure"), completion: completion("memory-pressure"))
    var memoryPressure: String?

    @Option(help: help("object-limit"))
    var objectLimit: String?

    @Option(help: help("variants-limit"))
    var variantsLimit: String?

    @Option(help: help("default-ttl"))
    var defaultTTL: String?

    /// The texts given for each setting; empty for a setting that is not given.
    var flags: [(String, [String])] {
        [
            ("memory-limit", memoryLimit.texts),
            ("memory-entries", memoryEntries.texts),
            ("memory-pressure", memoryPressure.texts),
            ("object-limit", objectLimit.texts),
            ("variants-limit", variantsLimit.texts),
            ("default-ttl", defaultTTL.texts),
        ]
    }
}

/// The flags under “Disk” of the table of settings.
struct DiskOptions: ParsableArguments {
    @Option(help: help("cache-dir"), completion: completion("cache-dir"))
    var cacheDir: String?

    @Option(help: help("disk-limit"))
    var diskLimit: String?

    @Option(help: help("age-limit"))
    var ageLimit: String?

    @Option(help: help("touch-interval"))
    var touchInterval: String?

    @Option(help: help("disk-queue-limit"))
    var diskQueueLimit: String?

    @Option(help: help("disk-threads"))
    var diskThreads: String?

    /// The texts given for each setting; empty for a setting that is not given.
    var flags: [(String, [String])] {
        [
            ("cache-dir", cacheDir.texts),
            ("disk-limit", diskLimit.texts),
            ("age-limit", ageLimit.texts),
            ("touch-interval", touchInterval.texts),
            ("disk-queue-limit", diskQueueLimit.texts),
            ("disk-threads", diskThreads.texts),
        ]
    }
}

/// Returns the help of a setting from the table.
func help(_ name: String) -> ArgumentHelp {
    let (text, placeholder) = Configuration.help(for: name)
    return ArgumentHelp("\(text)", valueName: placeholder)
}

/// Returns the shell completion of a setting.
func completion(_ name: String) -> CompletionKind {
    switch Configuration.completion(for: name) {
    case .file: .file()
    case .directory: .directory
    case .choices(let choices): .list(choices)
    case nil: .default
    }
}

extension String? {
    /// The text in a list; empty if there is none.
    var texts: [String] { map { [$0] } ?? [] }
}
