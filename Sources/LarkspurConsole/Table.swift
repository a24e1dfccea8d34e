/// Text in columns that are as wide as their widest cell.
package struct Table {
  package enum Alignment: Hashable, Sendable {
    case left
    case right
  }

  private let columns: [Alignment]
  private var rows: [(cells: [String], style: (String) -> String)] = []

  package init(columns: [Alignment]) {
    self.columns = columns
  }

  /// Appends a row. `style` adds characters that take no room on the screen.
  package mutating func append(_ cells: [String], style: @escaping (String) -> String = { $0 }) {
    rows.append((cells, style))
  }

  package var text: String {
    let widths = columns.indices.map { column in
      rows.map { column < $0.cells.count ? $0.cells[column].count : 0 }.max() ?? 0
    }
    return rows.map { row in
      var line = zip(zip(row.cells, widths), columns).map { cell, alignment in
        Format.padded(cell.0, to: cell.1, atEnd: alignment == .left)
      }.joined(separator: "  ")
      while line.last == " " { line.removeLast() }
      return row.style(line) + "\n"
    }.joined()
  }
}
