import Foundation
import Testing

/// Expressions of JavaScript that look over the whole page, from the files of their names in
/// `ScanBudget`.
enum PageScript: String {
    /// Lists what sticks out or is cut off.
    case overflow
    /// Lists what is hard to read.
    case contrast
    /// Numbers the controls, and counts them.
    case controls
    /// Where the focus is, and what is wrong there.
    case focus

    func text() throws -> String {
        let folder = try #require(Bundle.module.resourceURL?.appending(path: "Looks"))
        return try String(contentsOf: folder.appending(path: "\(rawValue).js"), encoding: .utf8)
    }
}
