/// A setting of a node: everything about it but its value.
package struct Setting: Hashable, Sendable {
    /// The name: the key in the file, and the flag without its dashes.
    package let name: String
    /// The type of the values, in words.
    package let kind: SettingKind
    /// The texts of the default values; empty if there is none.
    package let defaults: [String]
    /// The rule by which the default is computed; empty if ``defaults`` is the whole default.
    package let defaultNote: String
    /// An example of a valid value.
    package let example: String
    /// True if the setting may be repeated; values are separated by white space in the environment.
    package let isList: Bool
    /// True if a running node cannot apply a new value.
    package let needsRestart: Bool
    /// True if the value must be the same on all nodes of a cluster, which compare it.
    package let isSameOnAllNodes: Bool
    /// The meaning for the operator, in one line without a full stop.
    package let meaning: String
    /// The advice for a limit that is reached or a value that does not fit.
    package let advice: String

    /// Creates a setting from its parts; without an example, the first default is the example, or
    /// without one that of the kind.
    package init(
        _ name: String, _ kind: SettingKind, defaults: [String], note defaultNote: String = "",
        example: String? = nil, isList: Bool = false, needsRestart: Bool = false,
        isSameOnAllNodes: Bool = false, meaning: String, advice: String
    ) {
        self.name = name
        self.kind = kind
        self.defaults = defaults
        self.defaultNote = defaultNote
        self.example = example ?? defaults.first ?? kind.example
        self.isList = isList
        self.needsRestart = needsRestart
        self.isSameOnAllNodes = isSameOnAllNodes
        self.meaning = meaning
        self.advice = advice
    }

    /// The command-line flag, such as `--memory-limit`.
    package var flag: String { "--" + name }

    /// The environment variable, such as `NUTHATCH_MEMORY_LIMIT`.
    package var environmentName: String {
        Self.environmentPrefix + String(name.uppercased().map { $0 == "-" ? "_" : $0 })
    }

    /// The prefix of all environment variables of a node.
    package static let environmentPrefix = "NUTHATCH_"

    /// The default as displayed to an operator.
    package var defaultText: String {
        if !defaultNote.isEmpty { return defaultNote }
        return defaults.isEmpty ? "none" : defaults.joined(separator: " ")
    }

    /// The paragraph for `--help`: meaning, units, range, default and environment variable.
    package var help: String {
        var parts = ["Allowed: \(kind.allowed)"]
        if !kind.unit.isEmpty { parts.append("Units: \(kind.unit)") }
        if isList { parts.append("May be repeated; separated by white space in the environment") }
        parts.append("Default: \(defaultText)")
        if needsRestart { parts.append("Changes only at a restart") }
        parts.append("Environment: \(environmentName)")
        return meaning + ". " + parts.map { $0 + "." }.joined(separator: " ")
    }
}

/// The type of a setting's values, in words.
package struct SettingKind: Hashable, Sendable {
    /// What a shell completes as a value.
    package enum Completion: Hashable, Sendable {
        case none
        case file
        case directory
    }

    /// The noun for a value in a sentence, with its article.
    package let noun: String
    /// The placeholder for a value in a synopsis.
    package var placeholder: String
    /// The permitted units of a value, smallest first; empty for kinds without a unit.
    package let unit: String
    /// The permitted range or form as text.
    package var allowed: String
    /// The permitted words; empty if values are not chosen among words.
    package let choices: [String]
    /// An example of a valid value; empty for kinds whose settings have a default or an example.
    package let example: String
    /// What a shell completes beside ``choices``.
    package var completion: Completion

    /// Creates a kind from its parts.
    package init(
        noun: String, placeholder: String, unit: String = "", allowed: String,
        choices: [String] = [], example: String = "", completion: Completion = .none
    ) {
        self.noun = noun
        self.placeholder = placeholder
        self.unit = unit
        self.allowed = allowed
        self.choices = choices
        self.example = example
        self.completion = completion
    }
}
