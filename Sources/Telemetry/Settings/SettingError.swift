/// Where the text of a setting came from.
package enum SettingSource: Hashable, Sendable {
    /// The command line.
    case flag
    case environment
    /// A file as it was named, and the line from 1.
    case file(name: String, line: Int?)
    /// The table.
    case builtIn

    /// As in `from environment NUTHATCH_MEMORY_LIMIT`, for the setting `name`.
    package func text(for name: SettingName) -> String {
        switch self {
        case .flag: "flag \(name.flag)"
        case .environment: "environment \(name.environmentName)"
        case .file(let file, let line):
            line.map { "\(file.singleLine), line \($0)" } ?? file.singleLine
        case .builtIn: "the built-in default"
        }
    }
}

/// One value that a setting refused: which setting, from where, why, and what is allowed.
package struct SettingError: Error, Hashable, CustomStringConvertible {
    /// Why a text is no value.
    package enum Problem: Hashable, Sendable {
        case malformed
        case belowRange
        case aboveRange
        /// A network with bits set past its prefix; the one that was perhaps meant.
        case hostBitsSet(meant: String)
        /// A setting of one value was given this many.
        case severalValues(Int)
        /// A list that must not be empty is.
        case noValue
        /// A mapping, or a list inside a list, in the YAML file.
        case nested
    }

    package let setting: Setting
    package let source: SettingSource
    /// The refused text; empty if the fault is not in a text.
    package let text: String
    package let problem: Problem

    package init(setting: Setting, source: SettingSource, text: String, problem: Problem) {
        self.setting = setting
        self.source = source
        self.text = text
        self.problem = problem
    }

    /// One line, control bytes escaped.
    package var description: String {
        let name = setting.name
        return "setting \(name.rawValue) (from \(source.text(for: name))): \(reason); "
            + "allowed: \(setting.kind.allowed)" + example
    }

    private var example: String {
        guard !isEnumerated, let example = setting.example else { return "" }
        return ", e.g. \(example)"
    }

    private var isEnumerated: Bool {
        guard case .choice = setting.kind else { return false }
        return true
    }

    private var reason: String {
        let quoted = text.withoutUserinfo.quoted(limit: 80)
        return switch problem {
        case .malformed:
            isEnumerated ? "\(quoted) is none of them" : "\(quoted) is not \(setting.kind.noun)"
        case .belowRange: "\(quoted) is too small"
        case .aboveRange: "\(quoted) is too large"
        case .hostBitsSet(let meant): "\(quoted) has bits set past its prefix; perhaps \(meant)"
        case .severalValues(let count): "\(count) values are given, and it takes one"
        case .noValue: "no value is given"
        case .nested: "a plain value is needed here"
        }
    }
}
