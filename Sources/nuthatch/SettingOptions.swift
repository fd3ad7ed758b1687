import ArgumentParser
import Foundation
import NodeConfiguration
import Telemetry

/// The flags of all settings, for every command that uses a node's settings.
struct SettingOptions: ParsableArguments {
    @OptionGroup(title: Setting.Section.node.rawValue)
    var node: SettingGroup<NodeSection>

    @OptionGroup(title: Setting.Section.memory.rawValue)
    var memory: SettingGroup<MemorySection>

    @OptionGroup(title: Setting.Section.disk.rawValue)
    var disk: SettingGroup<DiskSection>

    @OptionGroup(title: Setting.Section.origins.rawValue)
    var origins: SettingGroup<OriginsSection>

    @OptionGroup(title: Setting.Section.clients.rawValue)
    var clients: SettingGroup<ClientsSection>

    @OptionGroup(title: Setting.Section.tls.rawValue)
    var tls: SettingGroup<TLSSection>

    @OptionGroup(title: Setting.Section.cluster.rawValue)
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

/// A section of the table of settings, as a type.
protocol SettingSection {
    /// The section.
    static var section: Setting.Section { get }
}

enum NodeSection: SettingSection { static let section = Setting.Section.node }
enum MemorySection: SettingSection { static let section = Setting.Section.memory }
enum DiskSection: SettingSection { static let section = Setting.Section.disk }
enum OriginsSection: SettingSection { static let section = Setting.Section.origins }
enum ClientsSection: SettingSection { static let section = Setting.Section.clients }
enum TLSSection: SettingSection { static let section = Setting.Section.tls }
enum ClusterSection: SettingSection { static let section = Setting.Section.cluster }

/// The flags of one section of the table of settings.
///
/// ArgumentParser finds options by reflection, and this type's reflection is the table: a setting
/// is declared there and nowhere else.
struct SettingGroup<Name: SettingSection>: ParsableArguments, CustomReflectable {
    /// The texts given for each setting, by its name; none for a setting that is not given.
    private(set) var texts: [String: [String]] = [:]

    init() {}

    init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: SettingKey.self)
        for setting in Self.settings {
            let key = SettingKey(stringValue: setting.name.rawValue)
            texts[key.stringValue] =
                setting.isList
                ? try values.decode(Option<[String]>.self, forKey: key).wrappedValue
                : try values.decode(Option<String?>.self, forKey: key).wrappedValue.map { [$0] }
        }
    }

    var customMirror: Mirror {
        Mirror(
            self,
            children: Self.settings.map { setting in
                (label: "_\(setting.name.rawValue)", value: Self.option(for: setting))
            })
    }

    private static var settings: [Setting] {
        Setting.table.filter { $0.section == Name.section }
    }

    private static func option(for setting: Setting) -> Any {
        let name = NameSpecification.customLong(setting.name.rawValue)
        let help = ArgumentHelp("\(setting.help)", valueName: setting.kind.placeholder)
        let completion = CompletionKind(setting)
        return setting.isList
            ? Option<[String]>(wrappedValue: [], name: name, help: help, completion: completion)
            : Option<String?>(name: name, help: help, completion: completion) as Any
    }
}

/// The name of a setting as a key of ArgumentParser's decoder.
private struct SettingKey: CodingKey {
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
            switch setting.kind {
            case .path: setting.name == .cacheDir ? .directory : .file()
            case .choice(let choices): .list(choices)
            default: .default
            }
    }
}
