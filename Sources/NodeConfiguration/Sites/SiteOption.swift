import HTTPRules

/// An option of a site, of all images, or of the images from some origins: a key of their blocks in
/// the file.
package struct SiteOption: Sendable {
    /// The blocks that may have an option.
    package struct Scope: OptionSet, Hashable, Sendable {
        /// The bits, one for each kind of block.
        package let rawValue: UInt8

        /// Creates a set from its bits.
        package init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// The block of a site.
        package static let site = Scope(rawValue: 1 << 0)
        /// The block of all images.
        package static let images = Scope(rawValue: 1 << 1)
        /// A block of the images from some origins.
        package static let imageOrigins = Scope(rawValue: 1 << 2)
        /// Every block.
        static let everywhere: Scope = [.site, .images, .imageOrigins]
    }

    /// The key in the file.
    package let name: String
    /// The blocks that may have the option.
    package let scope: Scope
    /// The description of allowed values.
    package let allowed: String
    /// An example of a valid value.
    package let example: String
    /// The default of a site as displayed to an operator.
    package let siteDefault: String
    /// The default of images as displayed to an operator.
    package let imageDefault: String
    /// The meaning for the operator, in one line without a full stop.
    package let meaning: String
    /// True if no values are shown, because any field may hold a secret.
    let isSecret: Bool
    /// Parses the value and applies it to settings.
    let apply: @Sendable (RawSiteBlock.Value, inout SiteSettings) throws(SiteOptionError) -> Void
}

extension SiteOption: Hashable {
    /// Returns true if both are the option of one name.
    package static func == (left: SiteOption, right: SiteOption) -> Bool { left.name == right.name }

    /// Hashes the name.
    package func hash(into hasher: inout Hasher) { hasher.combine(name) }
}

extension SiteOption {
    /// Declares an option that sets a property.
    ///
    /// - Parameters:
    ///   - name: the key in the file.
    ///   - type: the type of the values.
    ///   - path: the property.
    ///   - scope: the blocks that may have the option.
    ///   - note: the words for the absence of a value.
    ///   - isSecret: true if no values are shown.
    ///   - meaning: the meaning for the operator, in one line without a full stop.
    init<Value>(
        _ name: String, _ type: SiteOptionType<Value>,
        _ path: any WritableKeyPath<SiteSettings, Value> & Sendable, in scope: Scope = .site,
        absent note: String = "none", isSecret: Bool = false, meaning: String
    ) {
        self.init(
            name: name, scope: scope, allowed: type.allowed, example: type.example,
            siteDefault: type.text(SiteSettings()[keyPath: path]) ?? note,
            imageDefault: type.text(SiteSettings.images[keyPath: path]) ?? note,
            meaning: meaning, isSecret: isSecret,
            apply: { value, settings throws(SiteOptionError) in
                settings[keyPath: path] = try type.parse(value)
            })
    }

    /// Declares an option that sets a property which is `nil` without it; see the other.
    init<Value>(
        _ name: String, _ type: SiteOptionType<Value>,
        _ path: any WritableKeyPath<SiteSettings, Value?> & Sendable, in scope: Scope = .site,
        absent note: String = "none", meaning: String
    ) {
        self.init(
            name: name, scope: scope, allowed: type.allowed, example: type.example,
            siteDefault: SiteSettings()[keyPath: path].flatMap(type.text) ?? note,
            imageDefault: SiteSettings.images[keyPath: path].flatMap(type.text) ?? note,
            meaning: meaning, isSecret: false,
            apply: { value, settings throws(SiteOptionError) in
                settings[keyPath: path] = try type.parse(value)
            })
    }

    /// Declares the option of a site's origin, which is not part of its settings.
    init(_ name: String, allowed: String, example: String, meaning: String) {
        self.init(
            name: name, scope: .site, allowed: allowed, example: example, siteDefault: "none",
            imageDefault: "none", meaning: meaning, isSecret: false, apply: { _, _ in })
    }
}

extension SiteOption {
    /// The options under the names of their declarations.
    package static let all = SiteOptions()
    /// All options in their order.
    package static let table: [SiteOption] = Mirror(reflecting: all).children
        .compactMap { $0.value as? SiteOption }

    /// Returns the options of a block in the order of the table; for ``Scope/imageOrigins``, those
    /// come first that all images may have.
    package static func options(of scope: Scope) -> [SiteOption] {
        let options = table.filter { $0.scope.isSuperset(of: scope) }
        guard scope == .imageOrigins else { return options }
        return options.filter { $0.scope.contains(.images) }
            + options.filter { !$0.scope.contains(.images) }
    }

    /// Returns the option with the name closest to `text`; `nil` if none is close.
    static func nearest(to text: String, among options: [SiteOption]) -> SiteOption? {
        Spelling.nearest(to: text, among: options.map { ($0, $0.name) })
    }
}

extension SiteOption {
    /// The blocks of the file that may have the option, as text.
    package var blocks: String {
        let names: [(Scope, String)] = [
            (.site, "sites"), (.images, "images"), (.imageOrigins, "origins of images"),
        ]
        return names.filter { scope.contains($0.0) }.map(\.1).joined(separator: ", ")
    }

    /// The paragraph for `nuthatch explain`: meaning, allowed values, an example and the defaults.
    package var help: String {
        var parts = [meaning, "Allowed: \(allowed)", "Example: \(example)"]
        if scope.contains(.site) { parts.append("Default: \(siteDefault)") }
        if scope.contains(.images), imageDefault != siteDefault {
            parts.append("Default of images: \(imageDefault)")
        }
        return parts.map { $0 + "." }.joined(separator: " ")
    }
}
