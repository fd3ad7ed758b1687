import ArgumentParser
import Foundation
import NodeConfiguration
import Telemetry

/// The flags of all settings, for every command that uses a node's settings.
struct SettingOptions: ParsableArguments {
    @OptionGroup(title: NodeSection.title)
    var node: SettingGroup<NodeSection>

    @OptionGroup(title: MemorySection.title)
    var memory: SettingGroup<MemorySection>

    @OptionGroup(title: DiskSection.title)
    var disk: SettingGroup<DiskSection>

    @OptionGroup(title: OriginSection.title)
    var origins: SettingGroup<OriginSection>

    @OptionGroup(title: ClientSection.title)
    var clients: SettingGroup<ClientSection>

    @OptionGroup(title: TLSSection.title)
    var tls: SettingGroup<TLSSection>

    @OptionGroup(title: ClusterSection.title)
    var cluster: SettingGroup<ClusterSection>

    /// The sources of the settings: these flags and this process's environment.
    var sources: ConfigurationSources {
        let groups = [
            node.texts, memory.texts, disk.texts, origins.texts, clients.texts, tls.texts,
            cluster.texts,
        ]
        return ConfigurationSources(
            flags: groups.reduce(into: [:]) { $0.merge($1) { first, _ in first } })
    }

    /// Resolves and checks all settings, and prints the faults.
    ///
    /// - Throws: the exit code `EX_CONFIG` if there are any; an invalid command line has ended with
    ///   `EX_USAGE` before.
    func load() throws(ExitCode) -> Configuration {
        do throws(ConfigurationErrors) {
            return try sources.load()
        } catch {
            for line in error.lines { printError(line) }
            throw ExitCode(EX_CONFIG)
        }
    }
}

/// Writes a line to standard error, after the name of the program.
func printError(_ line: String) {
    FileHandle.standardError.write(Data("nuthatch: \(line)\n".utf8))
}

/// The flags of one section of the table of settings.
///
/// ArgumentParser finds options by reflection, and this type's reflection is the table: a setting
/// is declared there and nowhere else.
struct SettingGroup<Section: SettingSection>: ParsableArguments, CustomReflectable {
    /// The texts given for each setting, by its name; none for a setting that is not given.
    private(set) var texts: [String: [String]] = [:]

    init() {}

    /// Takes the texts of the section's settings from the parsed command line.
    init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: OptionKey.self)
        for setting in Section.settings {
            let key = OptionKey(stringValue: setting.name)
            texts[key.stringValue] =
                setting.isList
                ? try values.decode(Option<[String]>.self, forKey: key).wrappedValue
                : try values.decode(Option<String?>.self, forKey: key).wrappedValue.map { [$0] }
        }
    }

    /// The options of the section's settings, as ArgumentParser expects them of stored properties.
    var customMirror: Mirror {
        Mirror(
            self,
            children: Section.settings.map { setting in
                (label: "_\(setting.name)", value: Self.option(for: setting))
            })
    }

    /// Returns the option for a setting: a list, or an optional text.
    private static func option(for setting: Setting) -> Any {
        let name = NameSpecification.customLong(setting.name)
        let help = ArgumentHelp("\(setting.help)", valueName: setting.kind.placeholder)
        let completion = CompletionKind(setting)
        return setting.isList
            ? Option<[String]>(wrappedValue: [], name: name, help: help, completion: completion)
            : Option<String?>(name: name, help: help, completion: completion) as Any
    }
}

/// The name of a setting as a key of ArgumentParser's decoder.
private struct OptionKey: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) {
        self.stringValue = stringValue
    }

    init?(intValue: Int) { nil }
}

extension CompletionKind {
    /// Creates what a shell completes for the values of a setting.
    fileprivate init(_ setting: Setting) {
        self =
            switch setting.kind.completion {
            case .none: setting.kind.choices.isEmpty ? .default : .list(setting.kind.choices)
            case .file: .file()
            case .directory: .directory
            }
    }
}
