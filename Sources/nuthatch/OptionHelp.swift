import ArgumentParser
import Node

/// What the table of settings says of one, for the option that carries it.
func help(_ name: String) -> ArgumentHelp {
    let (text, placeholder) = Configuration.help(for: name)
    return ArgumentHelp("\(text)", valueName: placeholder)
}

/// What a shell offers for the value of the setting.
func completion(_ name: String) -> CompletionKind {
    switch Configuration.completion(for: name) {
    case .file: .file()
    case .directory: .directory
    case .choices(let choices): .list(choices)
    case nil: .default
    }
}

extension String? {
    /// The text in a list, or no list items if there is none.
    var texts: [String] { map { [$0] } ?? [] }
}
