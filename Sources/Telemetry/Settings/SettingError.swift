/// The source of the text of a setting.
package enum SettingSource: Hashable, Sendable {
    /// The command line, with the flag.
    case flag(String)
    /// An environment variable, with its name.
    case environment(String)
    /// A file, by the name that was given, and the line counted from 1.
    case file(name: String, line: Int?)
    /// The default in the table of settings.
    case builtIn

    /// The source as text for a message, such as `environment NUTHATCH_MEMORY_LIMIT`.
    package var text: String {
        switch self {
        case .flag(let flag): "flag \(flag)"
        case .environment(let name): "environment \(name)"
        case .file(let file, let line):
            line.map { "\(file.singleLine), line \($0)" } ?? file.singleLine
        case .builtIn: "the built-in default"
        }
    }
}

/// The error for an invalid value: the setting, the source, the reason, and the allowed values.
package struct SettingError: Error, Hashable, CustomStringConvertible {
    /// The reason why a text is not a valid value.
    package enum Problem: Error, Hashable {
        /// The text does not have the required form.
        case malformed
        /// The value is below the range.
        case belowRange
        /// The value is above the range.
        case aboveRange
        /// A network with bits set beyond its prefix; `meant` is the network without them.
        case hostBitsSet(meant: String)
        /// This number of values was given for a setting with a single value.
        case severalValues(Int)
        /// No value was given for a list that must not be empty.
        case noValue
        /// A mapping, or a list inside a list, was found in the YAML file.
        case nested
    }

    /// The setting.
    package let setting: Setting
    /// The source of the text.
    package let source: SettingSource
    /// The rejected text; empty if the error does not concern a text.
    package let text: String
    /// The reason.
    package let problem: Problem

    /// Creates an error from its parts.
    package init(setting: Setting, source: SettingSource, text: String, problem: Problem) {
        self.setting = setting
        self.source = source
        self.text = text
        self.problem = problem
    }

    /// The message for the operator, on one line with control characters escaped.
    package var description: String {
        "setting \(setting.name) (from \(source.text)): \(reason); "
            + "allowed: \(setting.kind.allowed)"
            + (setting.kind.choices.isEmpty ? ", e.g. \(setting.example)" : "")
    }

    private var reason: String {
        let quoted = text.withoutUserinfo.quoted(limit: 80)
        return switch problem {
        case .malformed:
            "\(quoted) is "
                + (setting.kind.choices.isEmpty ? "not \(setting.kind.noun)" : "not one of them")
        case .belowRange: "\(quoted) is too small"
        case .aboveRange: "\(quoted) is too large"
        case .hostBitsSet(let meant): "\(quoted) has bits set past its prefix; perhaps \(meant)"
        case .severalValues(let count): "\(count) values are given; one is allowed"
        case .noValue: "no value is given"
        case .nested: "the value must be plain text"
        }
    }
}
