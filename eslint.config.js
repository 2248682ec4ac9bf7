import js from '@eslint/js';
import reactHooks from 'eslint-plugin-react-hooks';
import tseslint from 'typescript-eslint';

export default tseslint.config(
  // The programs in test/fixtures/clients are compiled beside clients that a test generates.
  { ignores: ['dist/', 'shared/gen/', 'client/api/gen/', '.local/', 'node_modules/', 'test/fixtures/clients/'] },
  js.configs.recommended,
  ...tseslint.configs.strictTypeChecked,
  ...tseslint.configs.stylisticTypeChecked,
  {
    languageOptions: {
      parserOptions: {
        projectService: true,
        tsconfigRootDir: import.meta.dirname,
      },
    },
    rules: {
      'max-lines': ['error', { max: 400, skipBlankLines: true, skipComments: true }],
      'max-lines-per-function': ['error', { max: 100, skipBlankLines: true, skipComments: true }],
      'no-restricted-properties': [
        'error',
        { object: 'process', property: 'exit', message: 'set process.exitCode and let the program end' },
      ],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/no-confusing-void-expression': 'off',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      '@typescript-eslint/prefer-nullish-coalescing': 'off',
      '@typescript-eslint/require-await': 'off',
      '@typescript-eslint/no-empty-function': 'off',
      '@typescript-eslint/prefer-promise-reject-errors': 'off',
      '@typescript-eslint/dot-notation': 'off',
    },
  },
  // TanStack Router leads elsewhere by throwing.
  {
    files: ['console/**/*.{ts,tsx}'],
    plugins: { 'react-hooks': reactHooks },
    rules: {
      'react-hooks/rules-of-hooks': 'error',
      'react-hooks/exhaustive-deps': 'error',
      '@typescript-eslint/only-throw-error': 'off',
      'no-restricted-syntax': [
        'error',
        {
          selector: "JSXAttribute[name.name='style']",
          message: 'styles belong into a CSS module: the policy of the page allows no inline style',
        },
        {
          selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']",
          message: 'show text, not HTML: it can be of a stranger',
        },
      ],
    },
  },
  // One line for each column, in one place: the check of the schema reads it.
  { files: ['control-plane/store/schema.ts'], rules: { 'max-lines': 'off' } },
  // A suite is a list of cases, not one thought.
  { files: ['test/**/*.test.ts', 'test/suites/*.ts'], rules: { 'max-lines-per-function': 'off' } },
  {
    files: ['**/*.js', '**/*.cjs'],
    ...tseslint.configs.disableTypeChecked,
    languageOptions: { ...tseslint.configs.disableTypeChecked.languageOptions, globals: { module: 'writable' } },
  },
);
