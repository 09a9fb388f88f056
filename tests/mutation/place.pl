#!/usr/bin/env perl
# place.pl FILE FUNCTION OLD [NEW]: finds the text OLD, which must occur once in the definitions of FUNCTION in FILE
# ("": in the file), and prints the file with NEW in its place; without NEW prints how often OLD occurs. A space in OLD
# stands for any white space, so that rows survive when lines are broken elsewhere.
use strict;
use warnings;

my ($file, $function, $old, $new) = @ARGV;
open(my $in, '<', $file) or die "$file: $!\n";
my $text = do { local $/; <$in> };

# The text with the contents of comments and literals replaced by spaces.
my $code = $text;
$code =~ s{(//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+')}{$1 =~ s/[^\n]/ /gr}gse;

# Returns the position behind the bracket that closes the one at $at.
sub closing {
  my ($at) = @_;
  my $depth = 0;
  for (pos($code) = $at; $code =~ /([\[({])|([\])}])/g;) {
    $depth += defined $1 ? 1 : -1;
    return pos($code) if $depth == 0;
  }
  return length $code;
}

# [begin, end) of the definitions of FUNCTION, or of a class or table with this name.
my @ranges;
@ranges = ([0, length $text]) if $function eq '';
while ($function ne '' && $code =~ /(?<![\w.>])\Q$function\E(?=\W)/g) {
  my ($begin, $at) = ($-[0], $+[0]);
  pos($code) = $at;
  $at = closing($+[0] - 1) if $code =~ /\G\s*\(/gc;
  pos($code) = $at;
  next unless $code =~ /\G[^;{}]*?\{/gc;  # ends a declaration or a call
  my $end = closing(pos($code) - 1);
  while (substr($code, $end) =~ /^(\s*,[^;{}]*\{|\s*\{)/) { $end = closing($end + length($1) - 1) }  # behind initializers
  push @ranges, [$begin, $end];
  pos($code) = $end;
}

my $pattern = join '\s+', map { quotemeta } split ' ', $old;
my %found;
for my $range (@ranges) {
  my $part = substr($text, $range->[0], $range->[1] - $range->[0]);
  $found{$range->[0] + $-[0]} = $range->[0] + $+[0] while $part =~ /$pattern/g;
}
if (!defined $new) { print scalar(keys %found), "\n"; exit 0 }
die "$file: $function: not once: $old\n" if keys %found != 1;
my ($begin, $end) = %found;
print substr($text, 0, $begin), $new, substr($text, $end);
