import ArgumentParser
import Foundation
import Node

/// The flags of all settings, which every command takes that has to do with a node's settings.
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

    /// These flags with this process's environment.
    var sources: ConfigurationSources {
        let given = [
            node.flags, memory.flags, disk.flags, origins.flags, clients.flags, tls.flags,
            cluster.flags,
        ]
        return ConfigurationSources(
            flags: given.joined().reduce(into: [:]) { $0[$1.0] = $1.1 })
    }

    /// Resolves and checks everything.
    ///
    /// - Throws: after each fault has been named, the exit code that sysexits(3) has for it; a
    ///   command line that cannot be read has ended with `EX_USAGE` before.
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
