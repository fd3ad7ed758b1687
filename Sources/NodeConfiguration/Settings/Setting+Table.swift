package import Telemetry

/// A section of the table of settings: a heading in `--help`, and the settings below it as stored
/// properties of type ``SettingKey``, in their order.
package protocol SettingSection: Sendable {
    /// The heading.
    static var title: String { get }
}

extension SettingSection {
    /// The settings of the section.
    package static var settings: [Setting] {
        Setting.sections.first { $0.title == title }?.keys.map(\.setting) ?? []
    }

    /// The settings of the section with their values' types.
    fileprivate var section: (title: String, keys: [any AnySettingKey]) {
        (
            Self.title,
            Mirror(reflecting: self).children.compactMap { $0.value as? any AnySettingKey }
        )
    }
}

/// The table of settings: each is declared once, in its section; flags, variables, the keys of the
/// file, help, pages and the values that code reads follow from it.
extension Setting {
    /// The settings of the node itself.
    package static let node = NodeSection()
    /// The settings of the memory tier.
    package static let memory = MemorySection()
    /// The settings of the disk cache.
    package static let disk = DiskSection()
    /// The settings of origins, fetches and sites.
    package static let origins = OriginSection()
    /// The settings of clients.
    package static let clients = ClientSection()
    /// The settings of TLS.
    package static let tls = TLSSection()
    /// The settings of the cluster.
    package static let cluster = ClusterSection()

    /// The sections in their order, with their settings.
    package static let sections: [(title: String, keys: [any AnySettingKey])] = [
        node.section, memory.section, disk.section, origins.section, clients.section, tls.section,
        cluster.section,
    ]
    /// All settings with their values' types, in the order of the sections.
    static let keys: [any AnySettingKey] = sections.flatMap(\.keys)
    /// All settings in the order of the sections.
    package static let table: [Setting] = keys.map(\.setting)

    private static let byName = Dictionary(
        uniqueKeysWithValues: table.map { ($0.name, $0) })

    /// Returns the setting with this name; `nil` if there is none.
    package static func named(_ name: String) -> Setting? { byName[name] }
}

/// A type from which the values of settings are read under the names of their declarations, as in
/// `configuration.waitTimeout`.
@dynamicMemberLookup
package protocol SettingReader {
    /// Returns the value of a setting.
    subscript<Value>(key: SettingKey<Value>) -> Value { get }
}

extension SettingReader {
    /// Returns the value of a setting of the node itself.
    package subscript<Value>(dynamicMember path: KeyPath<NodeSection, SettingKey<Value>>) -> Value {
        self[Setting.node[keyPath: path]]
    }

    /// Returns the value of a setting of the memory tier.
    package subscript<Value>(
        dynamicMember path: KeyPath<MemorySection, SettingKey<Value>>
    ) -> Value { self[Setting.memory[keyPath: path]] }

    /// Returns the value of a setting of the disk cache.
    package subscript<Value>(dynamicMember path: KeyPath<DiskSection, SettingKey<Value>>) -> Value {
        self[Setting.disk[keyPath: path]]
    }

    /// Returns the value of a setting of origins.
    package subscript<Value>(
        dynamicMember path: KeyPath<OriginSection, SettingKey<Value>>
    ) -> Value { self[Setting.origins[keyPath: path]] }

    /// Returns the value of a setting of clients.
    package subscript<Value>(
        dynamicMember path: KeyPath<ClientSection, SettingKey<Value>>
    ) -> Value { self[Setting.clients[keyPath: path]] }

    /// Returns the value of a setting of TLS.
    package subscript<Value>(dynamicMember path: KeyPath<TLSSection, SettingKey<Value>>) -> Value {
        self[Setting.tls[keyPath: path]]
    }

    /// Returns the value of a setting of the cluster.
    package subscript<Value>(
        dynamicMember path: KeyPath<ClusterSection, SettingKey<Value>>
    ) -> Value { self[Setting.cluster[keyPath: path]] }
}
